import { Tokenizer } from "@huggingface/tokenizers";
import { ServiceError } from "../../contract/errors.ts";
import { errorMessage } from "../../log/error-message.ts";
import type { TextTokenizer } from "../samples/token-windows.ts";
import { languageFiles } from "./language-files.ts";
import { readLanguageModel } from "./open-language-model.ts";

/**
 * Opens the tokenizer of a checkpoint.
 * @param checkpoint path of the `config.json`, or of the GGUF file
 * @throws ServiceError model_unsupported where it is of a kind that is not known
 */
export async function openTextTokenizer(checkpoint: string): Promise<TextTokenizer> {
  const { facts } = readLanguageModel(checkpoint);
  const files = await languageFiles(checkpoint, "cpu");
  const readJson = (name: string): object => {
    const content = files.get(name);
    return content === undefined ? {} : JSON.parse(new TextDecoder().decode(content));
  };
  try {
    const content = { ...optionalParts, ...readJson("tokenizer.json") };
    const tokenizer = new Tokenizer(content, readJson("tokenizer_config.json"));
    const encode = (text: string) => tokenizer.encode(text, { add_special_tokens: false }).ids;
    return {
      encode,
      prefix: findPrefix(tokenizer.encode("a").ids, encode("a")),
      vocabularySize: facts.vocabularySize,
      contextLength: facts.contextLength,
    };
  } catch (cause) {
    const message = `The tokenizer cannot be used: ${errorMessage(cause)}`;
    throw new ServiceError("model_unsupported", message, { cause });
  }
}

/** Parts of a tokenizer.json that may be absent, and that the library asks for. */
const optionalParts = {
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
};

/** What stands before a text's own tokens where special tokens are added. */
function findPrefix(marked: readonly number[], plain: readonly number[]): number[] {
  const start = marked.findIndex((_, at) => plain.every((id, index) => marked[at + index] === id));
  return marked.slice(0, Math.max(0, start));
}
