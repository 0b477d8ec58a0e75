interface StreamEvent {
  readonly event: string | undefined;
  readonly id: string | undefined;
  /** Empty for an event that has an id alone. */
  readonly data: string;
}

/** Complete events of an event stream. What follows the last blank line is incomplete. */
export async function* readEventStream(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line) => [line.split(":", 1)[0], line.replace(/^[^:]*: ?/, "")]),
      );
      const [event, id, data = ""] = ["event", "id", "data"].map((name) => fields.get(name));
      if (id !== undefined || data !== "") yield { event, id, data };
    }
  }
}
