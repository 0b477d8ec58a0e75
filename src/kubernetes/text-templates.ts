/** Of texts with other counts of parts, whole texts are kept. */
const maxTemplates = 64;
const separator = '"';

/**
 * JSON texts of one resource are mostly alike: of each, only what differs from the first one with
 * as many quotation marks is kept, a third of it.
 */
export class TextTemplates {
  /** Parts of the first text, by their count. */
  readonly #templates = new Map<number, readonly string[]>();

  /** What `unpack` makes the text of, for as long as this object lives. */
  pack(json: string): string {
    const parts = json.split(separator);
    const template = this.#templates.get(parts.length) ?? this.#addTemplate(parts);
    if (template === undefined) return json;
    const packed: (string | number)[] = [parts.length];
    parts.forEach((part, index) => {
      if (part !== template[index]) packed.push(index, part);
    });
    return packed.join(separator);
  }

  unpack(packed: string): string {
    if (packed.startsWith("{")) return packed;
    const [count, ...differences] = packed.split(separator);
    const parts = [...(this.#templates.get(Number(count)) ?? [])];
    for (let at = 0; at < differences.length; at += 2)
      parts[Number(differences[at])] = differences[at + 1] ?? "";
    return parts.join(separator);
  }

  #addTemplate(parts: readonly string[]): readonly string[] | undefined {
    if (this.#templates.size === maxTemplates) return undefined;
    this.#templates.set(parts.length, parts);
    return parts;
  }
}
