/** Server-sent events, taken apart. */

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/**
 * Events from pieces of text. A piece may end anywhere; an event is told when
 * the empty line after it has come, so none is told half.
 */
export class EventParser {
  private rest = "";
  private id = "";

  push(text: string): ServerEvent[] {
    const blocks = (this.rest + text).split(/\r?\n\r?\n/);
    this.rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => this.parse(block));
  }

  private parse(block: string): ServerEvent[] {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split(/\r?\n/)) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
      else if (field === "id") this.id = value;
    }
    // A comment, sent to keep the connection, has neither.
    return data.length > 0 ? [{ id: this.id, event, data: data.join("\n") }] : [];
  }
}
