import type { CheckpointType, ValueRows } from "../checkpoints/checkpoint-values.ts";
import type { RotaryFacts } from "../checkpoints/rotary-cache.ts";
import {
  floatAttribute,
  intAttribute,
  integerListAttribute,
  stringAttribute,
} from "../onnx/node-attributes.ts";
import { type AttributeProto, TensorProto_DataType as DataType } from "../onnx/onnx_pb.js";
import type { OnnxModel } from "../onnx/onnx-model.ts";
import type { CheckpointWeights } from "./checkpoint-weights.ts";
import type { DecoderFacts } from "./decoder-facts.ts";
import { GraphBuilder, runtimeDomain } from "./graph-builder.ts";

/**
 * Writes the graph of a decoder as ONNX Runtime GenAI runs it: token ids, a mask and the keys and
 * values of past tokens in; logits of every position and the caches of all tokens out. Nodes and
 * values have the names that GenAI's own builder gives them. Weights stay in the checkpoint.
 *
 * Each matrix is stored as [outputs, inputs], as checkpoints have it, and transposed by a node of
 * its own, which goes where the matrix is quantized: blocks run along its rows.
 * @param type that weights and activations have; logits are float32, and so are the sums of layers
 * where half precision has too small a range for them
 * @throws ServiceError model_invalid, model_unsupported where the checkpoint does not have exactly
 * the tensors that the facts say
 */
export function writeDecoderGraph(
  facts: DecoderFacts,
  weights: CheckpointWeights,
  type: CheckpointType,
  { path, bytes }: Pick<OnnxModel, "path" | "bytes">,
): OnnxModel {
  const writer = new DecoderWriter(facts, weights, new GraphBuilder(path, bytes, type));
  return writer.write();
}

/** A value between layers: `branch` is still to be added to it. */
interface Residual {
  readonly trunk: string;
  readonly branch: string | undefined;
}

interface CacheSizes {
  /** Number of tokens in the cache of each sequence, less one. */
  readonly last: string;
  readonly total: string;
}

const cacheParts = ["key", "value"] as const;

class DecoderWriter {
  readonly #facts: DecoderFacts;
  readonly #weights: CheckpointWeights;
  /** Of what layers add to, and of its norms. */
  readonly #trunkType: CheckpointType;
  readonly #graph: GraphBuilder;
  readonly #sharedConstants = new Set<string>();
  readonly #rotaryCaches = new Map<RotaryFacts, { cos: string; sin: string }>();

  constructor(facts: DecoderFacts, weights: CheckpointWeights, graph: GraphBuilder) {
    this.#facts = facts;
    this.#weights = weights;
    this.#trunkType = facts.hasWideSums ? "float32" : graph.type;
    this.#graph = graph;
  }

  write(): OnnxModel {
    this.#addInputs();
    const sizes = this.#measureCaches();
    let residual: Residual = { trunk: this.#embed(), branch: undefined };
    for (let layer = 0; layer < this.#facts.layers; layer++) {
      residual = this.#addLayer(layer, residual, sizes);
    }
    const { layers } = this.#facts;
    const last = `/model/layers.${layers}/final_norm_layernorm`;
    const names = [
      "model.norm.weight",
      `model.layers.${layers}.final_norm_layernorm.weight`,
    ] as const;
    const { normed } = this.#addNorm(last, residual, ...names);
    this.#addHead(this.#narrow(last, normed));
    this.#weights.requireAllTaken();
    return this.#graph.finish();
  }

  #addInputs(): void {
    const { vocabularySize, kvHeads, headSize, layers } = this.#facts;
    this.#graph.addInput("input_ids", "int64", ["batch_size", "sequence_length"]);
    this.#graph.addInput("attention_mask", "int64", ["batch_size", "total_sequence_length"]);
    this.#graph.addOutput("logits", "float32", ["batch_size", "sequence_length", vocabularySize]);
    for (let layer = 0; layer < layers; layer++) {
      for (const part of cacheParts) {
        const [past, present] = [`past_key_values.${layer}.${part}`, `present.${layer}.${part}`];
        const shape = (tokens: string) => ["batch_size", kvHeads, tokens, headSize];
        this.#graph.addInput(past, this.#graph.type, shape("past_sequence_length"));
        this.#graph.addOutput(present, this.#graph.type, shape("total_sequence_length"));
      }
    }
  }

  /** How many tokens the mask names, as attention takes it. */
  #measureCaches(): CacheSizes {
    const base = "/model/attn_mask_reformat/attn_mask_subgraph";
    const add = (name: string, opType: string, input: string[], attribute: AttributeProto[] = []) =>
      this.#graph.addNode({ name: `${base}/${name}`, opType, input, attribute });
    const one = this.#graph.addConstant("/model/constants/INT64/[1]", [1]);
    const toInt32 = [intAttribute("to", DataType.INT32)];
    const tokens = add(
      "ReduceSum",
      "ReduceSum",
      ["attention_mask", one],
      [intAttribute("keepdims", 0)],
    );
    const last = add("Sub/Cast", "Cast", [add("Sub", "Sub", [tokens, one])], toInt32);
    const shape = add("Shape", "Shape", ["attention_mask"]);
    const length = add("Gather", "Gather", [shape, one], [intAttribute("axis", 0)]);
    return { last, total: add("Gather/Cast", "Cast", [length], toInt32) };
  }

  #embed(): string {
    const { vocabularySize, hiddenSize, embeddingScale } = this.#facts;
    const dims = [vocabularySize, hiddenSize];
    const name = "model.embed_tokens.weight";
    const table = this.#graph.addWeight(name, dims, [this.#weights.take(name, dims)]);
    const gathered = this.#graph.addNode({
      name: "/model/embed_tokens/Gather",
      opType: "Gather",
      input: [table, "input_ids"],
    });
    const rows = this.#widen("/model/embed_tokens", gathered);
    if (embeddingScale === 1) return rows;
    const scale = this.#graph.addConstant("/model/constants/FLOAT/embedding_scale", embeddingScale);
    return this.#graph.addNode({
      name: "/model/embed_tokens/Mul",
      opType: "Mul",
      input: [rows, scale],
    });
  }

  #addLayer(layer: number, before: Residual, sizes: CacheSizes): Residual {
    const { hasOutputNorms } = this.#facts;
    const [scope, stored] = [`/model/layers.${layer}`, `model.layers.${layer}`];
    const addNorm = (name: string, residual: Residual) =>
      this.#addNorm(`${scope}/${name}`, residual, `${stored}.${name}.weight`);
    const input = addNorm("input_layernorm", before);
    const attentionInput = this.#narrow(`${scope}/input_layernorm`, input.normed);
    const attended = this.#addAttention(layer, attentionInput, sizes);
    let branch = this.#widen(`${scope}/attn`, attended);
    if (hasOutputNorms) {
      branch = addNorm("post_attention_layernorm", { trunk: branch, branch: undefined }).normed;
    }
    const middle = addNorm(
      hasOutputNorms ? "pre_feedforward_layernorm" : "post_attention_layernorm",
      { trunk: input.trunk, branch },
    );
    const feedForwardInput = this.#narrow(`${scope}/mlp`, middle.normed);
    branch = this.#widen(`${scope}/mlp`, this.#addFeedForward(layer, feedForwardInput));
    if (hasOutputNorms) {
      branch = addNorm("post_feedforward_layernorm", { trunk: branch, branch: undefined }).normed;
    }
    return { trunk: middle.trunk, branch };
  }

  /** A value of matrix products as the trunk has them. */
  #widen(scope: string, value: string): string {
    if (this.#trunkType === this.#graph.type) return value;
    return this.#graph.addCast(`${scope}/Cast_wide`, value, this.#trunkType);
  }

  /** A value of the trunk as matrix products take it. */
  #narrow(scope: string, value: string): string {
    if (this.#trunkType === this.#graph.type) return value;
    return this.#graph.addCast(`${scope}/Cast_narrow`, value, this.#graph.type);
  }

  /** Adds the branch to the trunk, where there is one, and the RMS norm of the sum. */
  #addNorm(
    scope: string,
    { trunk, branch }: Residual,
    source: string,
    weightName = source,
  ): { trunk: string; normed: string } {
    const { hiddenSize, epsilon } = this.#facts;
    const weight = this.#addNormWeight(weightName, source, hiddenSize, this.#trunkType);
    if (branch === undefined) {
      const normed = this.#graph.addNode({
        name: `${scope}/LayerNorm`,
        opType: "SimplifiedLayerNormalization",
        input: [trunk, weight],
        attribute: [
          intAttribute("axis", -1),
          floatAttribute("epsilon", epsilon),
          intAttribute("stash_type", 1),
        ],
      });
      return { trunk, normed };
    }
    const name = `${scope}/SkipLayerNorm`;
    const sum = `${name}/output_3`;
    const normed = this.#graph.addNode({
      name,
      opType: "SkipSimplifiedLayerNormalization",
      domain: runtimeDomain,
      input: [trunk, branch, weight],
      output: [`${name}/output_0`, "", "", sum],
      attribute: [floatAttribute("epsilon", epsilon)],
    });
    return { trunk: sum, normed };
  }

  #addNormWeight(name: string, source: string, size: number, type: CheckpointType): string {
    const { normAddend } = this.#facts;
    const stored = this.#weights.take(source, [size]);
    const piece = normAddend === 0 ? stored : { ...stored, addend: normAddend };
    return this.#graph.addWeight(name, [size], [piece], type);
  }

  #addAttention(layer: number, input: string, sizes: CacheSizes): string {
    const { heads, kvHeads, headSize, hiddenSize, hasHeadNorms } = this.#facts;
    const [scope, stored] = [`/model/layers.${layer}/attn`, `model.layers.${layer}.attn`];
    const source = `model.layers.${layer}.self_attn`;
    const queries = heads * headSize;
    const packed = queries + 2 * kvHeads * headSize;
    const projections = this.#weights.takeProjections(source, this.#facts);
    let states = this.#multiply(`${scope}/qkv_proj`, input, {
      name: `${stored}.qkv_proj.MatMul.weight`,
      dims: [packed, hiddenSize],
      pieces: projections.weights,
    });
    if (projections.biases.length > 0) {
      const name = `${stored}.qkv_proj.Add.bias`;
      const bias = this.#graph.addWeight(name, [packed], projections.biases);
      states = this.#graph.addNode({
        name: `${scope}/qkv_proj/Add`,
        opType: "Add",
        input: [states, bias],
      });
    }
    const attended = hasHeadNorms ? this.#normalizeHeads(layer, states) : [states, "", ""];
    const output = this.#attend(layer, attended, sizes);
    return this.#multiply(`${scope}/o_proj`, output, {
      name: `${stored}.o_proj.MatMul.weight`,
      dims: [hiddenSize, queries],
      pieces: [this.#weights.take(`${source}.o_proj.weight`, [hiddenSize, queries])],
    });
  }

  /** Cuts joined projections and norms each head of queries and keys. @returns q, k and v */
  #normalizeHeads(layer: number, states: string): string[] {
    const { heads, kvHeads, headSize } = this.#facts;
    const scope = `/model/layers.${layer}/attn`;
    const widths = [heads, kvHeads, kvHeads].map((count) => count * headSize);
    const lengths = this.#addSharedConstant("/model/constants/INT64/qkv_widths", widths);
    const outputs = widths.map((_, index) => `${scope}/qkv_proj/Split/output_${index}`);
    this.#graph.addNode({
      name: `${scope}/qkv_proj/Split`,
      opType: "Split",
      input: [states, lengths],
      output: outputs,
      attribute: [intAttribute("axis", -1)],
    });
    const [queries = "", keys = "", values = ""] = outputs;
    return [
      this.#normalizeHead(layer, "q_norm", queries, heads),
      this.#normalizeHead(layer, "k_norm", keys, kvHeads),
      values,
    ];
  }

  #normalizeHead(layer: number, part: string, states: string, heads: number): string {
    const { headSize, epsilon } = this.#facts;
    const scope = `/model/layers.${layer}/attn/${part}`;
    const source = `model.layers.${layer}.self_attn.${part}.weight`;
    const weight = this.#addNormWeight(
      `model.layers.${layer}.attn.${part}.layernorm.weight`,
      source,
      headSize,
      this.#graph.type,
    );
    const reshape = (name: string, value: string, shape: readonly number[]) =>
      this.#graph.addNode({
        name: `${scope}/${name}`,
        opType: "Reshape",
        input: [value, this.#addSharedConstant(`/model/constants/INT64/[${shape.join()}]`, shape)],
      });
    const normed = this.#graph.addNode({
      name: `${scope}/SimplifiedLayerNormalization`,
      opType: "SimplifiedLayerNormalization",
      input: [reshape("Reshape_1", states, [0, 0, heads, headSize]), weight],
      attribute: [
        intAttribute("axis", -1),
        floatAttribute("epsilon", epsilon),
        intAttribute("stash_type", 1),
      ],
    });
    return reshape("Reshape_2", normed, [0, 0, heads * headSize]);
  }

  #attend(layer: number, states: readonly string[], sizes: CacheSizes): string {
    const { heads, kvHeads, attentionScale, attentionSoftcap, windows } = this.#facts;
    const { rotary, localRotary } = this.#facts;
    const window = windows[layer] ?? 0;
    const { cos, sin } = this.#addRotaryCache(window > 0 ? (localRotary ?? rotary) : rotary);
    const name = `/model/layers.${layer}/attn/GroupQueryAttention`;
    const pasts = cacheParts.map((part) => `past_key_values.${layer}.${part}`);
    return this.#graph.addNode({
      name,
      opType: "GroupQueryAttention",
      domain: runtimeDomain,
      input: [...states, ...pasts, sizes.last, sizes.total, cos, sin],
      output: [`${name}/output_0`, ...cacheParts.map((part) => `present.${layer}.${part}`)],
      attribute: [
        intAttribute("num_heads", heads),
        intAttribute("kv_num_heads", kvHeads),
        floatAttribute("scale", attentionScale),
        intAttribute("local_window_size", window === 0 ? -1 : window),
        floatAttribute("softcap", attentionSoftcap),
        intAttribute("do_rotary", 1),
        intAttribute("rotary_interleaved", 0),
      ],
    });
  }

  #addRotaryCache(facts: RotaryFacts): { cos: string; sin: string } {
    const known = this.#rotaryCaches.get(facts);
    if (known !== undefined) return known;
    const suffix = facts === this.#facts.rotary ? "" : "_local";
    const [rows, columns] = [this.#facts.contextLength, facts.dimensions / 2];
    const add = (what: "cos" | "sin") =>
      this.#graph.addWeight(
        `${what}_cache${suffix}`,
        [rows, columns],
        [{ kind: "rotary", what, facts, rows, columns }],
      );
    const caches = { cos: add("cos"), sin: add("sin") };
    this.#rotaryCaches.set(facts, caches);
    return caches;
  }

  #addFeedForward(layer: number, input: string): string {
    const { hiddenSize, intermediateSize } = this.#facts;
    const [scope, stored] = [`/model/layers.${layer}/mlp`, `model.layers.${layer}.mlp`];
    const [gateRows, upRows] = this.#weights.takeGateAndUp(stored, this.#facts);
    const dims = [intermediateSize, hiddenSize];
    const project = (part: string, pieces: ValueRows[]) =>
      this.#multiply(`${scope}/${part}`, input, {
        name: `${stored}.${part}.MatMul.weight`,
        dims,
        pieces,
      });
    const [gate, up] = [project("gate_proj", [gateRows]), project("up_proj", [upRows])];
    const product = this.#graph.addNode({
      name: `${scope}/Mul`,
      opType: "Mul",
      input: [this.#activate(`${scope}/act_fn`, gate), up],
    });
    return this.#multiply(`${scope}/down_proj`, product, {
      name: `${stored}.down_proj.MatMul.weight`,
      dims: [hiddenSize, intermediateSize],
      pieces: [this.#weights.take(`${stored}.down_proj.weight`, [hiddenSize, intermediateSize])],
    });
  }

  #activate(scope: string, input: string): string {
    if (this.#facts.activation === "gelu-tanh") {
      return this.#graph.addNode({
        name: `${scope}/Gelu`,
        opType: "Gelu",
        input: [input],
        attribute: [stringAttribute("approximate", "tanh")],
      });
    }
    const sigmoid = this.#graph.addNode({
      name: `${scope}/Sigmoid`,
      opType: "Sigmoid",
      input: [input],
    });
    return this.#graph.addNode({ name: `${scope}/Mul`, opType: "Mul", input: [input, sigmoid] });
  }

  #addHead(states: string): void {
    const { vocabularySize, hiddenSize, isTied, logitSoftcap } = this.#facts;
    const dims = [vocabularySize, hiddenSize];
    const isCapped = logitSoftcap !== 0;
    const isCast = this.#graph.type !== "float32";
    const last = isCapped ? undefined : "logits";
    let matrix = "model.embed_tokens.weight";
    if (isTied) {
      this.#weights.leaveOut("lm_head.weight");
    } else {
      const pieces = [this.#weights.take("lm_head.weight", dims)];
      matrix = this.#graph.addWeight("lm_head.MatMul.weight", dims, pieces);
    }
    const product = this.#multiplyBy("/lm_head", states, matrix, isCast ? undefined : last);
    const output = isCast
      ? this.#graph.addCast("/lm_head/Cast", product, "float32", last)
      : product;
    if (!isCapped) return;
    const cap = this.#graph.addConstant("/model/constants/FLOAT/logit_softcap", logitSoftcap);
    const add = (opType: string, input: string[], result?: string) =>
      this.#graph.addNode({
        name: `/lm_head/softcap/${opType}`,
        opType,
        input,
        output: result === undefined ? undefined : [result],
      });
    add("Mul", [add("Tanh", [add("Div", [output, cap])]), cap], "logits");
  }

  #multiply(
    scope: string,
    input: string,
    { name, dims, pieces }: { name: string; dims: readonly number[]; pieces: readonly ValueRows[] },
  ): string {
    return this.#multiplyBy(scope, input, this.#graph.addWeight(name, dims, pieces));
  }

  /** Adds the product of rows and a matrix of [outputs, inputs]. */
  #multiplyBy(scope: string, input: string, matrix: string, output?: string): string {
    const transposed = this.#graph.addNode({
      name: `${scope}/Transpose`,
      opType: "Transpose",
      input: [matrix],
      attribute: [integerListAttribute("perm", [1, 0])],
    });
    return this.#graph.addNode({
      name: `${scope}/MatMul`,
      opType: "MatMul",
      input: [input, transposed],
      output: output === undefined ? undefined : [output],
    });
  }

  #addSharedConstant(name: string, value: readonly number[]): string {
    if (!this.#sharedConstants.has(name)) this.#graph.addConstant(name, value);
    this.#sharedConstants.add(name);
    return name;
  }
}
