import path from "node:path";
import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { invalidFileError } from "../checkpoints/checkpoint-tensor.ts";
import type { GgufValue } from "../checkpoints/read-gguf.ts";

/** Keys of an architecture, without its name. */
const knownKeys = [
  "block_count",
  "context_length",
  "embedding_length",
  "feed_forward_length",
  "attention.head_count",
  "attention.head_count_kv",
  "attention.key_length",
  "attention.value_length",
  "vocab_size",
  "attention.layer_norm_rms_epsilon",
  "rope.freq_base",
  "rope.dimension_count",
] as const;

export type ArchitectureKey = (typeof knownKeys)[number];

/** Reads values of metadata by their keys. */
export class MetadataReader {
  readonly #file: string;
  readonly #metadata: ReadonlyMap<string, GgufValue>;

  constructor(file: string, metadata: ReadonlyMap<string, GgufValue>) {
    this.#file = file;
    this.#metadata = metadata;
  }

  /** @throws ServiceError model_unsupported for a key of the architecture that is not known */
  requireKnownKeys(architecture: string): void {
    const known: readonly string[] = knownKeys;
    for (const key of this.#metadata.keys()) {
      if (!key.startsWith(`${architecture}.`)) continue;
      if (known.includes(key.slice(architecture.length + 1))) continue;
      const list = knownKeys.map((each) => `${architecture}.${each}`).join(", ");
      throw unsupportedError(this.#file, `the metadata ${quoteName(key)}`, list);
    }
  }

  text(key: string): string {
    const value = this.#metadata.get(key);
    if (typeof value === "string") return value;
    throw this.#unlike(key, "a text", value);
  }

  findText(key: string): string | undefined {
    return this.#metadata.has(key) ? this.text(key) : undefined;
  }

  /** @throws ServiceError model_unsupported where the text is not one of those that are known */
  requireOneOf(key: string, known: readonly string[]): string {
    const text = this.text(key);
    if (known.includes(text)) return text;
    throw unsupportedError(this.#file, `${key} ${quoteName(text)}`, known.join(", "));
  }

  find(key: string): number | undefined {
    return this.#metadata.has(key) ? this.number(key) : undefined;
  }

  number(key: string): number {
    const value = this.#metadata.get(key);
    if (typeof value === "number" && value >= 0 && value < Infinity) return value;
    throw this.#unlike(key, "a finite number from 0 on", value);
  }

  count(key: string, most = 2 ** 31): number {
    const value = this.number(key);
    if (Number.isInteger(value) && value >= 1 && value <= most) return value;
    throw this.#unlike(key, `a whole number from 1 to ${most}`, value);
  }

  findFlag(key: string): boolean | undefined {
    const value = this.#metadata.get(key);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.#unlike(key, "a boolean", value);
  }

  list(key: string): readonly GgufValue[] {
    const value = this.#metadata.get(key);
    if (typeof value === "object") return value;
    throw this.#unlike(key, "a list", value);
  }

  texts(key: string, mostCharacters = Infinity): string[] {
    const most = mostCharacters === Infinity ? "" : ` of ${mostCharacters} characters at most`;
    return this.list(key).map((each) => {
      if (typeof each === "string" && each.length <= mostCharacters) return each;
      throw this.#unlike(key, `a list of texts${most}`, each);
    });
  }

  numbers(key: string): number[] {
    return this.list(key).map((each) => {
      if (typeof each === "number") return each;
      throw this.#unlike(key, "a list of numbers", each);
    });
  }

  /** The error for a value that cannot be read. */
  invalid(key: string, problem: string): ServiceError {
    return invalidFileError(this.#file, undefined, `metadata ${quoteName(key)} ${problem}`);
  }

  #unlike(key: string, wanted: string, found: GgufValue | undefined): ServiceError {
    const what = found === undefined ? "is missing" : `is no ${wanted.replace(/^an? /, "")}`;
    return this.invalid(key, what);
  }
}

export function unsupportedError(file: string, what: string, known: string): ServiceError {
  const message = `${path.basename(file)}: ${what} is not known; the known ones are ${known}`;
  return new ServiceError("model_unsupported", message);
}
