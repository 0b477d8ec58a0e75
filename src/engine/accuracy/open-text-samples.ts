import { ServiceError } from "../../contract/errors.ts";
import { openTextTokenizer } from "../language/text-tokenizer.ts";
import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import {
  createTokenSample,
  findLanguageInputs,
  type LanguageInputs,
} from "../evaluate/language-inputs.ts";
import type { SampleSource } from "../evaluate/open-samples.ts";
import type { RunnableModel } from "../evaluate/model-session.ts";
import {
  isText,
  readBuiltinWindows,
  readCallerWindows,
  type TextTokenizer,
  type TokenWindow,
} from "../evaluate/token-windows.ts";

interface TextOptions {
  /** The checkpoint that the model was written from, which has its tokenizer. */
  readonly checkpointPath?: string | undefined;
  readonly dataPath?: string | undefined;
  readonly evaluation: { readonly samples: number };
}

interface TextSamples {
  /** Undefined where the model is no language model, or has neither text nor tokens to be run on. */
  readonly source?: SampleSource;
  readonly warnings: readonly EvaluationWarning[];
}

/** Tokens of a window at most, and bytes of its logits. */
const windowLimits = { tokens: 512, bytes: 64 * 1024 ** 2 };

/**
 * Opens the caller's text or tokens as samples of a language model, each a window of tokens; for a
 * checkpoint without data the text that is built in.
 * @throws ServiceError evaluation_data_invalid
 */
export async function openTextSamples(
  model: RunnableModel,
  { checkpointPath, dataPath, evaluation }: TextOptions,
): Promise<TextSamples> {
  const language = findLanguageInputs(model.signature);
  if (language === undefined) return { warnings: [] };
  const limitsOf = (tokenizer?: TextTokenizer) => ({
    count: evaluation.samples,
    tokens: windowTokens(language, tokenizer),
    vocabularySize: tokenizer?.vocabularySize ?? language.vocabularySize,
  });
  if (dataPath !== undefined) {
    if (!(await isText(dataPath))) return { warnings: [] };
    const tokenizer =
      checkpointPath === undefined ? undefined : await openTextTokenizer(checkpointPath);
    const windows = await readCallerWindows(dataPath, tokenizer, limitsOf(tokenizer));
    return { source: createSource(language, windows, "caller"), warnings: [] };
  }
  if (checkpointPath === undefined) return { warnings: [] };
  try {
    const tokenizer = await openTextTokenizer(checkpointPath);
    const limits = limitsOf(tokenizer);
    const windows = await readBuiltinWindows(tokenizer, limits);
    const isRead = windows.flat().every((id) => id < tokenizer.vocabularySize);
    if (isRead && windows.length > 0) {
      return { source: createSource(language, windows, "builtin"), warnings: [] };
    }
    return { warnings: [notTokenizedWarning("it does not know the words of the built-in text")] };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { warnings: [notTokenizedWarning(error.message)] };
  }
}

function notTokenizedWarning(reason: string): EvaluationWarning {
  const message = `The models were not compared on text, with the checkpoint's tokenizer: ${reason}`;
  return { code: "text_not_tokenized", message };
}

function windowTokens({ vocabularySize }: LanguageInputs, tokenizer?: TextTokenizer): number {
  const size = tokenizer?.vocabularySize ?? vocabularySize ?? 1;
  const { contextLength = windowLimits.tokens } = tokenizer ?? {};
  const bytes = Float32Array.BYTES_PER_ELEMENT * size;
  return Math.min(windowLimits.tokens, contextLength, Math.floor(windowLimits.bytes / bytes));
}

function createSource(
  language: LanguageInputs,
  windows: readonly TokenWindow[],
  data: "caller" | "builtin",
): SampleSource {
  async function* generate() {
    for (const window of windows) yield createTokenSample(language, window);
  }
  return {
    data,
    windows,
    count: windows.length,
    unused: 0,
    samples: { [Symbol.asyncIterator]: generate },
    failureCode: data === "caller" ? "evaluation_data_invalid" : "evaluation_failed",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
