import { ServiceError } from "../../contract/errors.ts";
import { openTextTokenizer } from "../language/text-tokenizer.ts";
import type { EvaluationWarning } from "../evaluate/evaluation-warning.ts";
import {
  createTokenSample,
  findLanguageInputs,
  type LanguageInputs,
} from "../samples/language-inputs.ts";
import type { SampleSource } from "../samples/open-samples.ts";
import type { RunnableModel } from "../runtime/model-session.ts";
import {
  type BuiltinText,
  isText,
  readBuiltinWindows,
  readCallerWindows,
  type TextTokenizer,
  type TokenWindow,
} from "../samples/token-windows.ts";

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
const maxWindow = { tokens: 512, bytes: 64 * 1024 ** 2 };

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
  if (dataPath !== undefined) {
    if (!(await isText(dataPath))) return { warnings: [] };
    const windows = await readOwnWindows(language, dataPath, checkpointPath, evaluation.samples);
    return { source: createSource(language, windows, "caller"), warnings: [] };
  }
  if (checkpointPath === undefined) return { warnings: [] };
  const windows = await readBuiltin(language, checkpointPath, "evaluation", evaluation.samples);
  if (typeof windows !== "string") {
    return { source: createSource(language, windows, "builtin"), warnings: [] };
  }
  const message = `The models were not compared on text, with the checkpoint's tokenizer: ${windows}`;
  return { warnings: [{ code: "text_not_tokenized", message }] };
}

/** Samples that an evaluation does not use, for a calibration or for a search for a recipe. */
export interface LaterSamples extends SampleSource {
  /** Those at the beginning of the caller's file that are the evaluation's. */
  readonly evaluationSamples: number | undefined;
}

/**
 * Opens text as openTextSamples does: windows after the evaluation's, or those of another text that
 * is built in.
 * @returns undefined where the model is no language model, or has neither text nor tokenizer
 * @throws ServiceError evaluation_data_invalid; recipe_unsupported for a checkpoint whose tokenizer
 * cannot be used
 */
export async function openLaterText(
  model: RunnableModel,
  options: Pick<TextOptions, "checkpointPath" | "dataPath"> & {
    /** Windows that the evaluation has of the same text at most; undefined where it has none. */
    readonly evaluationSamples: number | undefined;
    /** Most windows. */
    readonly samples: number;
  },
): Promise<LaterSamples | undefined> {
  const { checkpointPath, dataPath, evaluationSamples: wanted, samples } = options;
  const language = findLanguageInputs(model.signature);
  if (language === undefined) return undefined;
  if (dataPath !== undefined) {
    if (!(await isText(dataPath))) return undefined;
    // As many as say whether those that are wanted are more than half of the text.
    const most = (wanted ?? 0) + Math.max(wanted ?? 0, samples);
    const windows = await readOwnWindows(language, dataPath, checkpointPath, most);
    const evaluationSamples = wanted && Math.min(wanted, Math.ceil(windows.length / 2));
    const later = windows.slice(evaluationSamples).slice(0, samples);
    if (later.length > 0) {
      return { ...createSource(language, later, "caller"), evaluationSamples };
    }
    const problem = "has one window, which cannot serve both the evaluation and what comes before";
    throw new ServiceError("evaluation_data_invalid", `The evaluation data ${problem}`);
  }
  if (checkpointPath === undefined) return undefined;
  const windows = await readBuiltin(language, checkpointPath, "search", samples);
  if (typeof windows !== "string") {
    return { ...createSource(language, windows, "builtin"), evaluationSamples: undefined };
  }
  const problem = `A language model is run on text, with the checkpoint's tokenizer: ${windows}`;
  const advice = "give a file with lines of `input_ids` as the data";
  throw new ServiceError("recipe_unsupported", `${problem}; ${advice}`);
}

async function readOwnWindows(
  language: LanguageInputs,
  dataPath: string,
  checkpointPath: string | undefined,
  count: number,
): Promise<TokenWindow[]> {
  const tokenizer =
    checkpointPath === undefined ? undefined : await openTextTokenizer(checkpointPath);
  return readCallerWindows(dataPath, tokenizer, windowLimits(language, count, tokenizer));
}

/** @returns the windows, or why the tokenizer gives none */
async function readBuiltin(
  language: LanguageInputs,
  checkpointPath: string,
  name: BuiltinText,
  count: number,
): Promise<TokenWindow[] | string> {
  try {
    const tokenizer = await openTextTokenizer(checkpointPath);
    const limits = windowLimits(language, count, tokenizer);
    const windows = await readBuiltinWindows(name, tokenizer, limits);
    const isRead = windows.flat().every((id) => id < tokenizer.vocabularySize);
    if (isRead && windows.length > 0) return windows;
    return "it does not know the words of the built-in text";
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return error.message;
  }
}

function windowLimits(language: LanguageInputs, count: number, tokenizer?: TextTokenizer) {
  return {
    count,
    tokens: windowTokens(language, tokenizer),
    vocabularySize: tokenizer?.vocabularySize ?? language.vocabularySize,
  };
}

function windowTokens({ vocabularySize }: LanguageInputs, tokenizer?: TextTokenizer): number {
  const size = tokenizer?.vocabularySize ?? vocabularySize ?? 1;
  const { contextLength = maxWindow.tokens } = tokenizer ?? {};
  const bytes = Float32Array.BYTES_PER_ELEMENT * size;
  return Math.min(maxWindow.tokens, contextLength, Math.floor(maxWindow.bytes / bytes));
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
