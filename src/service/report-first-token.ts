import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/**
 * Shows the first token to a person at a terminal. Other output may be collected where many read
 * it, so that it names a file which the owner alone can read.
 */
export async function reportFirstToken(
  token: string,
  { output, directory }: { readonly output: Output; readonly directory: string },
): Promise<void> {
  if (output.isTTY === true) {
    output.write(`Access token with every scope, shown this once: ${token}\n`);
    return;
  }
  const file = resolve(join(directory, "first-token"));
  await writeFile(file, `${token}\n`, { mode: 0o600 });
  output.write(`Access token with every scope, in a file to be deleted: ${file}\n`);
}
