// The strokes of the page: 16 by 16, drawn in the colour of the text around them.
import type { ReactNode } from "react";

const STROKES = {
  overview: ["M2.5 9.5 5.5 6l2.5 3 5.5-6", "M2.5 13.5h11"],
  sessions: [
    "M2.5 4.2c0-.9.8-1.7 1.7-1.7h7.6c.9 0 1.7.8 1.7 1.7v4.6c0 .9-.8 1.7-1.7 1.7H7.6l-3.1 2.6v-2.6h-.3c-.9 0-1.7-.8-1.7-1.7z",
  ],
  runs: ["M8.8 1.8 3.4 9h4l-.3 5.2L12.6 7h-4z"],
  play: ["M3 3.5 6.5 8 3 12.5", "M8.5 12.5H13"],
  apps: ["M7.9 10.8a2.7 2.7 0 1 1-5.4 0 2.7 2.7 0 0 1 5.4 0z", "m7.2 8.8 6-6", "m10.8 5.2 1.8 1.8"],
  audit: ["M4 2.5h8v11l-2-1.3-2 1.3-2-1.3-2 1.3z", "M6.3 6h3.4M6.3 8.8h3.4"],
  settings: [
    "M10.1 8a2.1 2.1 0 1 1-4.2 0 2.1 2.1 0 0 1 4.2 0z",
    "M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6 5 5M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4",
  ],
  moon: ["M13 9.4A5.4 5.4 0 0 1 6.6 3a5.4 5.4 0 1 0 6.4 6.4z"],
  sun: [
    "M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0z",
    "M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  ],
  screen: ["M2 3.2h12v7.6H2z", "M5.5 13.4h5M8 10.8v2.6"],
  search: ["M11.2 7a4.2 4.2 0 1 1-8.4 0 4.2 4.2 0 0 1 8.4 0z", "m10.2 10.2 3.3 3.3"],
  question: [
    "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
    "M6.3 6.4c0-1 .8-1.7 1.7-1.7s1.7.7 1.7 1.6c0 1.3-1.7 1.4-1.7 2.7",
    "M8 11.3v.01",
  ],
  clock: ["M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z", "M8 4.8V8l2.2 1.6"],
  right: ["m6 4 4 4-4 4"],
  left: ["m9.8 3.8-4.2 4.2 4.2 4.2"],
  down: ["m4 6.2 4 4 4-4"],
  up: ["M8 13V3.4M4 7.2l4-4 4 4"],
  stop: ["M5.2 4h5.6A1.2 1.2 0 0 1 12 5.2v5.6a1.2 1.2 0 0 1-1.2 1.2H5.2A1.2 1.2 0 0 1 4 10.8V5.2A1.2 1.2 0 0 1 5.2 4z"],
  more: ["M3.5 8h.01M8 8h.01M12.5 8h.01"],
  clip: ["M12.6 7.4 8 12a3 3 0 0 1-4.2-4.2l5-5a2 2 0 0 1 2.8 2.8l-5 5a.9.9 0 0 1-1.3-1.3L9.8 5"],
  thought: ["M6 12.8h4M6.6 14.3h2.8", "M5.9 10.9C4.6 10 3.7 8.6 3.7 7a4.3 4.3 0 0 1 8.6 0c0 1.6-.9 3-2.2 3.9z"],
  edit: ["m3 13 .7-2.9L10.6 3.2a1.2 1.2 0 0 1 1.7 0l.5.5a1.2 1.2 0 0 1 0 1.7L5.9 12.3z"],
  terminal: [
    "M3.6 3h8.8A1.6 1.6 0 0 1 14 4.6v6.8a1.6 1.6 0 0 1-1.6 1.6H3.6A1.6 1.6 0 0 1 2 11.4V4.6A1.6 1.6 0 0 1 3.6 3z",
    "m4.8 6.2 2 1.8-2 1.8M8.6 10h2.6",
  ],
  file: ["M4 2.2h5l3 3v8.6H4z", "M9 2.2v3h3"],
  globe: [
    "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
    "M2 8h12M8 2c2 1.8 2.8 3.8 2.8 6S10 12.2 8 14C6 12.2 5.2 10.2 5.2 8S6 3.8 8 2z",
  ],
  tool: [
    "M9.8 2.6a3.6 3.6 0 0 0-4.5 4.7L2.4 10.2a1.5 1.5 0 0 0 0 2.1l1.3 1.3a1.5 1.5 0 0 0 2.1 0l2.9-2.9a3.6 3.6 0 0 0 4.7-4.5l-2.2 2.2-2.1-.6-.6-2.1z",
  ],
  trash: ["M3 4.5h10M6.2 4.5V3h3.6v1.5M4.4 4.5l.6 9h6l.6-9"],
  copy: [
    "M6.6 5.2h5.2a1.4 1.4 0 0 1 1.4 1.4v5.4a1.4 1.4 0 0 1-1.4 1.4H6.6A1.4 1.4 0 0 1 5.2 12V6.6a1.4 1.4 0 0 1 1.4-1.4z",
    "M3 10.6V4.2c0-.8.6-1.4 1.4-1.4h6",
  ],
  tick: ["m3 8.5 3.2 3.2L13 4.8"],
  cross: ["m4 4 8 8M12 4l-8 8"],
  bar: ["M3.5 8h9"],
  broken: ["M2.5 8h3.2M10.3 8h3.2M7.2 5.6l1.6 4.8"],
  ring: ["M12.5 8a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0z"],
  dot: ["M9.2 8a1.2 1.2 0 1 1-2.4 0 1.2 1.2 0 0 1 2.4 0z"],
  warn: ["M8 2.4 14.2 13H1.8z", "M8 6.6v3M8 11.3v.01"],
  download: ["M8 2.6v7.6M4.6 7l3.4 3.4L11.4 7", "M3 13.4h10"],
  plus: ["M8 3v10M3 8h10"],
  bell: ["M4 11.4V7.2a4 4 0 0 1 8 0v4.2l1 1.2H3z", "M6.8 14.2h2.4"],
  out: ["M6.5 2.8H3.2v10.4h3.3", "M6.5 8h7M10.8 5.2 13.6 8l-2.8 2.8"],
  list: ["M2.5 4h11M2.5 8h11M2.5 12h7"],
} as const;

export type IconName = keyof typeof STROKES | "half";

export function Icon({ name, className, label }: { name: IconName; className?: string; label?: string }): ReactNode {
  const named = label ? { role: "img", "aria-label": label } : { "aria-hidden": true };
  return (
    <svg className={`i ${className ?? ""}`} viewBox="0 0 16 16" {...named}>
      {name === "half" ? <Half /> : STROKES[name].map((path) => <path key={path} d={path} />)}
    </svg>
  );
}

/** A disc that is half full: at work. */
function Half(): ReactNode {
  return (
    <>
      <circle cx="8" cy="8" r="5.4" />
      <path className="fill" d="M8 2.6a5.4 5.4 0 0 1 0 10.8z" />
    </>
  );
}

/** The mark: three strokes of a claw, hot from left to right. */
export function Mark({ className }: { className?: string }): ReactNode {
  return (
    <svg className={`mark ${className ?? ""}`} viewBox="0 0 26 26" aria-hidden="true">
      <rect className="plate" width="26" height="26" rx="7" />
      <g fill="none" strokeLinecap="round" strokeWidth="2.6">
        <path d="M6.4 18.8C7 14 8.3 10 10.4 6.6" stroke="#ffb067" />
        <path d="M12 20.2C12.5 14.6 13.8 10 16 6" stroke="#ff8a3d" />
        <path d="M17.8 18.8c.3-3.6 1.1-6.8 2.5-9.8" stroke="#f0611a" />
      </g>
    </svg>
  );
}
