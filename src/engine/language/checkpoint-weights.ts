import { ServiceError } from "../../contract/errors.ts";
import { quoteName } from "../../contract/text/quote-name.ts";
import { type CheckpointTensor, invalidFileError } from "../checkpoints/checkpoint-tensor.ts";
import type { StoredRows } from "../checkpoints/checkpoint-values.ts";
import { encodedBytes } from "../checkpoints/encodings.ts";
import type { DecoderFacts } from "./decoder-facts.ts";

/** Values of a weight in FP8 that share a scale. */
export const fp8BlockSizes = { rows: 128, columns: 128 } as const;

/** Tensors that hold nothing which the configuration does not say. */
const derived = /(^|\.)rotary_emb\.inv_freq$/;

/**
 * The tensors of a checkpoint by the names that transformers gives them, each of which a graph takes
 * once or says that it leaves it out: one that nothing takes would be a part of the model that is
 * lost.
 */
export class CheckpointWeights {
  readonly #tensors: ReadonlyMap<string, CheckpointTensor>;
  readonly #taken = new Set<string>();

  constructor(tensors: ReadonlyMap<string, CheckpointTensor>) {
    this.#tensors = tensors;
  }

  /**
   * Some rows of a tensor; of one with one axis, its only row.
   * @param dims sizes that the whole tensor must have
   * @throws ServiceError model_invalid where it is not there or has another shape
   */
  take(name: string, dims: readonly number[], rows?: { from: number; count: number }): StoredRows {
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) {
      throw new ServiceError("model_invalid", `The checkpoint has no tensor ${quoteName(name)}`);
    }
    if (tensor.dims.join() !== dims.join()) {
      const found = `shape [${tensor.dims.join(", ")}]`;
      const problem = `${found}, and the configuration needs [${dims.join(", ")}]`;
      throw invalidFileError(tensor.path, tensor.name, problem);
    }
    this.#taken.add(name);
    const [columns = 1] = dims.slice(-1);
    const { from, count } = rows ?? { from: 0, count: dims.length === 1 ? 1 : (dims[0] ?? 1) };
    const { path, encoding, interleavedRows } = tensor;
    const offset = tensor.offset + encodedBytes(encoding, from * columns);
    const blockScales = this.#findBlockScales(name, dims, from);
    return {
      kind: "stored",
      path,
      offset,
      encoding,
      rows: count,
      columns,
      interleavedRows,
      blockScales,
    };
  }

  /** The rows of queries, keys and values, one after the other, from one tensor or from three. */
  takeProjections(
    source: string,
    facts: DecoderFacts,
  ): { weights: StoredRows[]; biases: StoredRows[] } {
    const { heads, kvHeads, headSize, hiddenSize, hasProjectionBias } = facts;
    const joined = `${source}.qkv_proj.weight`;
    if (this.#tensors.has(joined)) {
      const dims = [(heads + 2 * kvHeads) * headSize, hiddenSize];
      return { weights: [this.take(joined, dims)], biases: [] };
    }
    const parts = [
      ["q_proj", heads * headSize],
      ["k_proj", kvHeads * headSize],
      ["v_proj", kvHeads * headSize],
    ] as const;
    const take = (part: string, dims: number[]) => this.take(`${source}.${part}`, dims);
    return {
      weights: parts.map(([part, rows]) => take(`${part}.weight`, [rows, hiddenSize])),
      biases: hasProjectionBias ? parts.map(([part, rows]) => take(`${part}.bias`, [rows])) : [],
    };
  }

  /** The gate's rows and those beside it, from one tensor or from two. */
  takeGateAndUp(
    source: string,
    { hiddenSize, intermediateSize: count }: DecoderFacts,
  ): [StoredRows, StoredRows] {
    const joined = `${source}.gate_up_proj.weight`;
    if (!this.#tensors.has(joined)) {
      const take = (part: string) => this.take(`${source}.${part}.weight`, [count, hiddenSize]);
      return [take("gate_proj"), take("up_proj")];
    }
    const take = (from: number) => this.take(joined, [2 * count, hiddenSize], { from, count });
    return [take(0), take(count)];
  }

  /** Says that a tensor is not needed, since another has the same values by the configuration. */
  leaveOut(name: string): void {
    this.#taken.add(name);
  }

  /** @throws ServiceError model_unsupported for a tensor that nothing took */
  requireAllTaken(): void {
    for (const [name, tensor] of this.#tensors) {
      if (this.#taken.has(name) || derived.test(name)) continue;
      const message = `Nothing of the configuration uses the tensor ${quoteName(tensor.name)}`;
      throw new ServiceError("model_unsupported", message);
    }
  }

  /** Scales of a weight in FP8, as DeepSeek's and Qwen's checkpoints have them beside it. */
  #findBlockScales(name: string, dims: readonly number[], firstRow: number) {
    const scalesName = `${name}_scale_inv`;
    const scales = this.#tensors.get(scalesName);
    if (scales === undefined) return undefined;
    const [rows = 1, columns = 1] = dims;
    const { rows: blockRows, columns: blockColumns } = fp8BlockSizes;
    const needed = [Math.ceil(rows / blockRows), Math.ceil(columns / blockColumns)];
    return { blockRows, blockColumns, firstRow, scales: this.take(scalesName, needed) };
  }
}
