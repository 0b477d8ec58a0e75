import { codeBlock, truncateToBytes, utf8ByteLength } from "./markdown.ts";

const maxLineBytes = 1_000;
const maxLines = 100;

interface TailLimits {
  readonly maxBytes: number;
  /** The page that has the whole output. */
  readonly url: string;
}

/** As many of the last lines of a job's output as fit. */
export function renderLogTail(output: readonly string[], { maxBytes, url }: TailLimits): string {
  const head = `### End of the output\n\n[All of it](${url})`;
  const lines = output.slice(-maxLines).map((line) => truncateToBytes(line, maxLineBytes));
  let tail = head;
  for (let first = lines.length - 1; first >= 0; first--) {
    const longer = `${head}\n\n${codeBlock(lines.slice(first))}`;
    if (utf8ByteLength(longer) > maxBytes) break;
    tail = longer;
  }
  return tail;
}
