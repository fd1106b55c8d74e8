// A change of a file, line by line. No ligatures: what is shown is what would be written.
import { memo, useState, type ReactNode } from "react";
import { fileDiff, type DiffContent } from "../model/tools";
import type { DiffLine } from "../model/diff";
import { Button, Said } from "./basic";

const LINES_SHOWN = 400;

function Line({ line }: { line: DiffLine }): ReactNode {
  return (
    <tr className={line.sign === "+" ? "a" : line.sign === "-" ? "d" : undefined}>
      <td className="ln">{line.before}</td>
      <td className="ln">{line.after}</td>
      <td className="sg">{line.sign === "-" ? "−" : line.sign}</td>
      <td>
        {line.parts.map((part, at) =>
          part.marked ? (
            <mark key={at}>
              <Said text={part.text} />
            </mark>
          ) : (
            <span key={at}>
              <Said text={part.text} />
            </span>
          ),
        )}
      </td>
    </tr>
  );
}

export const Counts = ({ added, removed }: { added: number; removed: number }): ReactNode => (
  <span className="pm">
    <span className="p">+{added}</span> <span className="m">−{removed}</span>
  </span>
);

export const DiffView = memo(function DiffView({
  content,
  named,
}: {
  content: DiffContent;
  named?: boolean;
}): ReactNode {
  const [all, setAll] = useState(false);
  const diff = fileDiff(content);
  let left = all ? Infinity : LINES_SHOWN;
  const hunks = diff.hunks.map((hunk) => {
    const lines = hunk.lines.slice(0, Math.max(0, left));
    left -= lines.length;
    return { hunk, lines };
  });
  const hidden =
    diff.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0) -
    hunks.reduce((sum, each) => sum + each.lines.length, 0);
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={`Change in ${content.path}`}>
      {named ? (
        <div className="diff-name">
          <code>
            <Said text={content.path} />
          </code>
          <Counts added={diff.added} removed={diff.removed} />
        </div>
      ) : null}
      <table>
        <tbody>
          {hunks.map(({ hunk, lines }, at) =>
            lines.length === 0
              ? null
              : [
                  <tr key={`h${at}`} className="h">
                    <td className="ln" />
                    <td className="ln" />
                    <td className="sg" />
                    <td>
                      {diff.isNew
                        ? "new file"
                        : diff.isGone
                          ? "deleted"
                          : `@@ ${hunk.lines[0]?.before ?? hunk.lines[0]?.after ?? 1} @@`}
                      {diff.coarse ? ", too long to compare" : ""}
                    </td>
                  </tr>,
                  ...lines.map((line, number) => <Line key={`${at}-${number}`} line={line} />),
                ],
          )}
        </tbody>
      </table>
      {diff.hunks.length === 0 ? <p className="diff-note dim">No change in the text.</p> : null}
      {hidden > 0 ? (
        <p className="diff-note">
          <Button onClick={() => setAll(true)}>Show {hidden} more lines</Button>
        </p>
      ) : null}
    </div>
  );
});
