import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { ServiceError } from "../../contract/errors.ts";
import { isGguf, readGguf } from "../checkpoints/read-gguf.ts";
import type { SpecialTokens } from "./decoder-facts.ts";
import { genaiConfig, type Sampling } from "./genai-config.ts";
import { MetadataReader } from "./gguf-metadata.ts";
import { readGgufTokenizer } from "./gguf-tokenizer.ts";
import { readLanguageModel } from "./open-language-model.ts";

/** Files of a checkpoint's folder that its result has unchanged. */
export const carriedFileNames = [
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "tokenizer.model",
  "chat_template.jinja",
  "generation_config.json",
] as const;

/**
 * The files that ONNX Runtime GenAI reads beside the model, by name: genai_config.json, those of the
 * tokenizer and the chat template.
 * @param checkpoint path of the `config.json`, or of the GGUF file
 * @param provider that GenAI runs the model on
 * @throws ServiceError model_invalid, model_unsupported where the tokenizer is unknown
 */
export async function languageFiles(
  checkpoint: string,
  provider: "cpu" | "cuda",
): Promise<Map<string, Uint8Array>> {
  const { facts } = readLanguageModel(checkpoint);
  const encode = (text: string) => new TextEncoder().encode(text);
  const describe = (tokens: SpecialTokens, sampling: Sampling): [string, Uint8Array] => {
    const config = `${JSON.stringify(genaiConfig(facts, provider, tokens, sampling), null, 4)}\n`;
    return ["genai_config.json", encode(config)];
  };
  if (isGguf(checkpoint)) {
    const { tokens, files } = readGgufTokenizer(
      new MetadataReader(checkpoint, readGguf(checkpoint).metadata),
    );
    const encoded = [...files].map(([name, text]) => [name, encode(text)] as const);
    return new Map([describe(tokens, {}), ...encoded]);
  }
  const folder = path.dirname(checkpoint);
  const carried = new Map<string, Uint8Array>();
  for (const name of carriedFileNames) {
    const file = path.join(folder, name);
    if (existsSync(file)) carried.set(name, await readFile(file));
  }
  if (!carried.has("tokenizer.json")) {
    throw new ServiceError("model_unsupported", "The folder has no tokenizer.json");
  }
  const { tokens, sampling } = await readGeneration(folder);
  return new Map([describe(tokens, sampling), ...carried]);
}

const id = z.int().min(0).nullish();
const generation = z.object({
  bos_token_id: id,
  eos_token_id: z.union([z.int().min(0), z.array(z.int().min(0))]).nullish(),
  pad_token_id: id,
  do_sample: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_k: z.int().nullish(),
  top_p: z.number().nullish(),
  repetition_penalty: z.number().nullish(),
});

/** What `generation_config.json` says, and config.json where it says nothing. */
async function readGeneration(
  folder: string,
): Promise<{ tokens: SpecialTokens; sampling: Sampling }> {
  const [config, own] = [
    await readGenerationFields(path.join(folder, "config.json")),
    await readGenerationFields(path.join(folder, "generation_config.json")),
  ];
  const eos = own.eos_token_id ?? config.eos_token_id ?? [];
  const tokens = {
    bos: own.bos_token_id ?? config.bos_token_id ?? undefined,
    eos: typeof eos === "number" ? [eos] : eos,
    pad: own.pad_token_id ?? config.pad_token_id ?? undefined,
  };
  return { tokens, sampling: own };
}

async function readGenerationFields(file: string): Promise<z.infer<typeof generation>> {
  if (!existsSync(file)) return {};
  try {
    return generation.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (cause) {
    const message = `${path.basename(file)} does not say how texts are generated`;
    throw new ServiceError("model_invalid", message, { cause });
  }
}
