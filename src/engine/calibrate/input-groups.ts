import { findAttribute } from "../onnx/node-attributes.ts";
import {
  type GraphProto,
  type NodeProto,
  TensorProto_DataType as DataType,
} from "../onnx/onnx_pb.js";
import { isAttributeSet } from "../quantize/channel-axis.ts";
import { type Weight, type WeightConsumer, weightDims } from "../quantize/find-weights.ts";
import {
  findProductMatrix,
  findReplaceableProduct,
  gathersRows,
} from "../quantize/formats/consumer-matrix.ts";
import { Obstacle } from "../quantize/obstacle.ts";
import type { BlockTask, WeightTask } from "../quantize/tasks/weight-task.ts";

/** A product that takes a weight in blocks. */
export interface Product {
  readonly node: NodeProto;
  readonly task: BlockTask;
  /** Whether the product is of float32, with all of the weight and nothing but a bias beside it. */
  readonly isWhole: boolean;
}

/** Products that have the same inputs. */
export interface InputGroup {
  /** Names of the inputs: several where a weight is used several times. */
  readonly values: readonly string[];
  readonly inputs: number;
  readonly products: readonly Product[];
  /**
   * Whether errors of the products before are observed beside the inputs: those of 8 bits are too
   * small to be worth a run.
   */
  readonly isFollowed: boolean;
}

/** Most inputs of a product, and most of them with the outputs, whose errors are observed. */
const [mostInputs, mostColumns] = [2048, 4096];

export function groupByInputs(
  tasks: readonly WeightTask[],
  weights: readonly Weight[],
  graph: GraphProto | undefined,
): InputGroup[] {
  const groups = new Map<string, Product[]>();
  for (const task of tasks) {
    const weight = weights[task.weight];
    if (weight === undefined || task.kind !== "blocks" || task.matrices > 1) continue;
    const consumers = listProducts(weight, task, graph);
    const values = listInputs(consumers);
    if (values.length === 0) continue;
    const key = JSON.stringify([values, task.shape.k]);
    const products = groups.get(key) ?? [];
    groups.set(key, products);
    products.push(...consumers.map((consumer) => describeProduct(consumer, task)));
  }
  return Array.from(groups.values(), describeGroup);
}

function listInputs(products: readonly Pick<WeightConsumer, "node">[]): string[] {
  return [...new Set(products.flatMap(({ node }) => node.input.slice(0, 1)))].toSorted();
}

function describeGroup(products: readonly Product[]): InputGroup {
  const values = listInputs(products);
  const inputs = products[0]?.task.shape.k ?? 0;
  const columns = products.reduce((sum, { task }) => sum + task.shape.n, inputs);
  const isFollowed =
    values.length === 1 &&
    products.every(({ isWhole, task }) => isWhole && task.format.bits === 4) &&
    new Set(products.map(({ task }) => task)).size === products.length &&
    inputs <= mostInputs &&
    columns <= mostColumns;
  return { values, inputs, products, isFollowed };
}

/**
 * Products that multiply rows of inputs with the whole weight; none where rows are gathered too, as
 * those of a tied embedding are: rounding that spares products spoils the rows.
 */
function listProducts(
  weight: Weight,
  { shape }: BlockTask,
  graph: GraphProto | undefined,
): WeightConsumer[] {
  if (weight.consumers.some((consumer) => gathersRows(weight, consumer))) return [];
  return weight.consumers.filter((consumer) => {
    const matrix = findProductMatrix(consumer);
    return (
      !(matrix instanceof Obstacle) &&
      consumer.scope.body === graph &&
      matrix.k.size === shape.k &&
      weightDims(weight)[matrix.k.source] === shape.k &&
      !isAttributeSet(consumer.node, "transA")
    );
  });
}

function describeProduct(consumer: WeightConsumer, task: BlockTask): Product {
  const { node, view } = consumer;
  const matrix = findReplaceableProduct(consumer);
  const isWhole =
    !(matrix instanceof Obstacle) &&
    matrix.n.size === task.shape.n &&
    view.elementType === DataType.FLOAT &&
    (findAttribute(node, "alpha")?.f ?? 1) === 1;
  return { node, task, isWhole };
}
