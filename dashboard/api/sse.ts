// Server-sent events out of pieces of text. Pure.

export interface SseEvent {
  id: string | null;
  event: string;
  data: string;
  fields: Record<string, string>;
}

export class SseParser {
  private rest = "";
  private lines: string[] = [];

  /** The events that are whole with this piece; a heartbeat is one without data, named ":". */
  take(piece: string): SseEvent[] {
    const found: SseEvent[] = [];
    const text = this.rest + piece;
    let begin = 0;
    while (true) {
      const end = text.indexOf("\n", begin);
      if (end < 0) break;
      const line = text.slice(begin, text.charCodeAt(end - 1) === 13 && end > begin ? end - 1 : end);
      begin = end + 1;
      if (line !== "") {
        if (line.startsWith(":")) found.push({ id: null, event: ":", data: line.slice(1).trim(), fields: {} });
        else this.lines.push(line);
        continue;
      }
      if (this.lines.length > 0) found.push(parse(this.lines));
      this.lines = [];
    }
    this.rest = text.slice(begin);
    return found;
  }
}

function parse(lines: string[]): SseEvent {
  const event: SseEvent = { id: null, event: "message", data: "", fields: {} };
  const data: string[] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line.charAt(colon + 1) === " " ? colon + 2 : colon + 1);
    if (name === "data") data.push(value);
    else if (name === "event") event.event = value;
    else if (name === "id") event.id = value;
    else event.fields[name] = value;
  }
  event.data = data.join("\n");
  return event;
}
