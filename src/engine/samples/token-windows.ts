import { open, readFile } from "node:fs/promises";
import { z } from "zod";
import { evaluationDataInvalidError } from "./npy-arrays.ts";

/** Makes tokens of texts. */
export interface TextTokenizer {
  readonly encode: (text: string) => number[];
  /** Tokens that every text begins with, such as that of the beginning of a sentence. */
  readonly prefix: readonly number[];
  readonly vocabularySize: number;
  /** Most tokens of a window. */
  readonly contextLength: number;
}

/** Ids of tokens that a model reads from an empty cache. */
export type TokenWindow = readonly number[];

/** How a text is divided. */
interface WindowLimits {
  /** Most windows. */
  readonly count: number;
  /** Tokens of a window of text. */
  readonly tokens: number;
  /** Ids are below it; unknown where the model does not say it. */
  readonly vocabularySize: number | undefined;
}

/** Of the caller's data, so much is read at most, bytes. */
const maxTextBytes = 64 * 1024 ** 2;
/** Characters of a text that are read for each token that is wanted: few texts have tokens so long. */
const charactersPerToken = 16;

/** Whether a file is no archive of arrays. */
export async function isText(path: string): Promise<boolean> {
  const { bytes } = await readStart(path, 4);
  return !(bytes[0] === 0x50 && bytes[1] === 0x4b);
}

/** Texts that evaluations, and searches for a recipe, have without data of the caller. */
export type BuiltinText = "evaluation" | "search";

/** The first windows of a text that is built in. */
export async function readBuiltinWindows(
  name: BuiltinText,
  tokenizer: TextTokenizer,
  limits: WindowLimits,
): Promise<TokenWindow[]> {
  const text = await readFile(new URL(`${name}-text.txt`, import.meta.url), "utf8");
  return divideText(text, tokenizer, limits).slice(0, limits.count);
}

/**
 * The first windows of the caller's text, which is plain or JSON in lines: `{"text": "…"}`,
 * `{"input_ids": […]}` or `[…]` each. Ids are a window as they are; texts are divided.
 * @param tokenizer absent where the model has none
 * @throws ServiceError evaluation_data_invalid
 */
export async function readCallerWindows(
  path: string,
  tokenizer: TextTokenizer | undefined,
  limits: WindowLimits,
): Promise<TokenWindow[]> {
  const text = await readText(path);
  const windows: TokenWindow[] = [];
  for (const document of listDocuments(text)) {
    if (windows.length >= limits.count) break;
    if (typeof document === "string") {
      windows.push(...divideText(document, requireTokenizer(tokenizer), limits));
    } else {
      windows.push(document);
    }
  }
  const taken = windows.slice(0, limits.count);
  if (taken.length === 0) {
    throw evaluationDataInvalidError("The evaluation data has no text of two tokens or more");
  }
  return taken.map((window, index) => checkIds(window, index, limits.vocabularySize));
}

function requireTokenizer(tokenizer: TextTokenizer | undefined): TextTokenizer {
  if (tokenizer !== undefined) return tokenizer;
  throw evaluationDataInvalidError(
    "The evaluation data is text, and the model is an ONNX file, which has no tokenizer: " +
      'give lines of JSON with "input_ids"',
  );
}

/** The longest windows that a text fills at least once: what is left at its end is not used. */
function divideText(
  text: string,
  { encode, prefix }: TextTokenizer,
  { count, tokens }: WindowLimits,
): TokenWindow[] {
  const ids = encode(text.slice(0, count * tokens * charactersPerToken));
  const step = Math.min(tokens - prefix.length, ids.length);
  if (prefix.length + step < 2) return [];
  const windows = Math.floor(ids.length / step);
  return Array.from({ length: windows }, (_, window) => [
    ...prefix,
    ...ids.slice(window * step, (window + 1) * step),
  ]);
}

function checkIds(
  window: TokenWindow,
  index: number,
  vocabularySize = Number.MAX_SAFE_INTEGER,
): TokenWindow {
  const wrong = window.find((id) => id >= vocabularySize);
  if (wrong === undefined) return window;
  const known = `the model's vocabulary has ${vocabularySize}`;
  throw evaluationDataInvalidError(`Window ${index + 1} has token ${wrong}, and ${known}`);
}

const ids = z.array(z.int().min(0)).min(2);
const line = z.union([ids, z.object({ input_ids: ids }), z.object({ text: z.string() })]);

/** The texts and windows of a file, each as it is reached. */
function* listDocuments(text: string): Generator<string | TokenWindow> {
  const lines = text.split("\n");
  const first = lines.find((each) => each.trim() !== "") ?? "";
  if (!/^\s*[{[]/.test(first) || parseJson(first) === undefined) {
    yield text;
    return;
  }
  for (const [index, content] of lines.entries()) {
    if (content.trim() === "") continue;
    const parsed = line.safeParse(parseJson(content));
    if (!parsed.success) {
      const wanted = 'an object with "text" or "input_ids", nor an array of two token ids or more';
      throw evaluationDataInvalidError(`Line ${index + 1} of the evaluation data is not ${wanted}`);
    }
    const { data } = parsed;
    if ("text" in data) yield data.text;
    else yield "input_ids" in data ? data.input_ids : data;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Lines that do not fit are left out. */
async function readText(path: string): Promise<string> {
  const { bytes, isWhole } = await readStart(path, maxTextBytes);
  const end = isWhole ? bytes.length : bytes.lastIndexOf(0x0a) + 1;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, end));
  } catch (cause) {
    const message = "The evaluation data is neither an .npz file nor text in UTF-8";
    throw evaluationDataInvalidError(message, cause);
  }
}

async function readStart(
  path: string,
  limit: number,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  await using file = await open(path);
  const { size } = await file.stat();
  const bytes = Buffer.alloc(Math.min(size, limit));
  const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
  return { bytes: bytes.subarray(0, bytesRead), isWhole: size <= limit };
}
