import { intAttribute } from "../../onnx/node-attributes.ts";
import { TensorProto_DataType as DataType } from "../../onnx/onnx_pb.js";
import type { NodeProto } from "../../onnx/onnx_pb.js";
import { gatherAxis, operatorOf } from "../channel-axis.ts";
import type { Weight } from "../find-weights.ts";
import type { Rewrite } from "../rewrite.ts";
import type { Form } from "./form.ts";
import { addLinearCodes, isHalf, linearBytes, linearFormat, weightDims } from "./linear-form.ts";
import type { LinearNames, LinearPlan } from "./linear-form.ts";

/** int8 codes of an embedding table whose gathered rows alone are turned back into numbers. */
export const gatheredRows: Form = (weight, recipe) => {
  const dims = weightDims(weight);
  for (const { node, input } of weight.uses) {
    const isRowGather = operatorOf(node) === "Gather" && input === 0 && gatherAxis(node, dims.length) === 0;
    if (!isRowGather) return `is used by ${operatorOf(node)}, which does not gather rows`;
  }
  const isPerRow = recipe.granularity !== "tensor";
  const plan: LinearPlan = {
    axis: isPerRow ? 0 : undefined,
    format: { ...linearFormat(recipe), reduceRange: false },
    transposed: false,
    scaleDims: isPerRow ? dims.map((dim, axis) => (axis === 0 ? dim : 1)) : [],
  };
  return {
    description: isPerRow ? "int8 with a scale for each row" : "int8 with one scale",
    bytes: linearBytes(weight, plan),
    opset: isHalf(weight) && !isPerRow ? 19 : 10,
    apply: (rewrite) => {
      const names = addLinearCodes(rewrite, weight, plan);
      for (const { node } of weight.uses) {
        if (isPerRow) replaceByRows(rewrite, { node, weight, names });
        else replaceByTensor(rewrite, node, names);
      }
    },
  };
};

interface Gathering {
  readonly node: NodeProto;
  readonly weight: Weight;
  readonly names: LinearNames;
}

function replaceByTensor(rewrite: Rewrite, node: NodeProto, names: LinearNames): void {
  const [, indices = ""] = node.input;
  const codes = rewrite.names.take(`${node.output[0]}_codes`);
  const { scales, zeroPoints } = names;
  rewrite.replace(node, [
    { opType: "Gather", input: [names.codes, indices], output: [codes] },
    {
      opType: "DequantizeLinear",
      input: zeroPoints === undefined ? [codes, scales] : [codes, scales, zeroPoints],
      output: node.output,
    },
  ]);
}

function replaceByRows(rewrite: Rewrite, { node, weight, names }: Gathering): void {
  const [, indices = ""] = node.input;
  const value = (part: string) => rewrite.names.take(`${node.output[0]}_${part}`);
  const to = [intAttribute("to", isHalf(weight) ? DataType.FLOAT16 : DataType.FLOAT)];
  const gathered = (table: string, part: string) => {
    const rows = value(part);
    return { rows, node: { opType: "Gather", input: [table, indices], output: [rows] } };
  };
  const codes = gathered(names.codes, "codes");
  const scales = gathered(names.scales, "scales");
  const numbers = value("numbers");
  const steps = [codes.node, scales.node, { opType: "Cast", input: [codes.rows], output: [numbers], attribute: to }];
  let centred = numbers;
  if (names.zeroPoints !== undefined) {
    const zeroPoints = gathered(names.zeroPoints, "zero_points");
    const offsets = value("offsets");
    centred = value("centred");
    steps.push(
      zeroPoints.node,
      { opType: "Cast", input: [zeroPoints.rows], output: [offsets], attribute: to },
      { opType: "Sub", input: [numbers, offsets], output: [centred] },
    );
  }
  rewrite.replace(node, [...steps, { opType: "Mul", input: [centred, scales.rows], output: node.output }]);
}
