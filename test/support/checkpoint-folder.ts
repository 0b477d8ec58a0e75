import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

const checkpoints = fileURLToPath(new URL("../engine/language/checkpoints", import.meta.url));

const unknownWords = Array.from({ length: 64 }, (_, id) => `t${id}`);

/** Words of texts that are built in. */
export const english =
  "? the of a and to in is it was that . , not for on as with he be at by had are which"
    .split(" ")
    .concat(["water", "sun", "light", "time", "house", "bread", "word", "memory"]);

/** A folder as a repository has it: with a tokenizer that knows some words. */
export async function makeCheckpointFolder(
  t: TestContext,
  family: string,
  words: readonly string[] = unknownWords,
): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "checkpoint-"));
  t.after(() => rm(folder, { recursive: true }));
  await cp(path.join(checkpoints, family), folder, { recursive: true });
  const vocab = Object.fromEntries(words.map((word, id) => [word, id]));
  const model = { type: "WordPiece", vocab, unk_token: words[0] };
  const divided = words === unknownWords ? {} : { pre_tokenizer: { type: "Whitespace" } };
  const content = JSON.stringify({ version: "1.0", model, ...divided });
  await writeFile(path.join(folder, "tokenizer.json"), content);
  return folder;
}
