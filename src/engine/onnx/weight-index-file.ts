import type { FileLayout, ModelLayout, Placement } from "./model-layout.ts";
import { modelGraphs } from "./model-traversal.ts";
import type { OnnxModel } from "./onnx-model.ts";
import { payloadIndex } from "./payload.ts";

/** The index of weight files in safetensors' form, which says which file has which tensor. */
export function weightIndexFile(model: OnnxModel, layout: ModelLayout): FileLayout | undefined {
  const weights = layout.files.filter(({ kind }) => kind === "weights");
  if (weights.length === 0) return undefined;
  const names = new Set(weights.map(({ name }) => name));
  const weightMap: Record<string, string> = {};
  let totalSize = 0;
  for (const graph of modelGraphs(model.proto)) {
    for (const tensor of graph.initializer) {
      const place = findPlacement(layout, payloadIndex(tensor));
      if (place === undefined || !names.has(place.file)) continue;
      weightMap[tensor.name] = place.file;
      totalSize += model.payloads[payloadIndex(tensor) ?? -1]?.length ?? 0;
    }
  }
  const index = { metadata: { total_size: totalSize }, weight_map: weightMap };
  const bytes = new TextEncoder().encode(`${JSON.stringify(index, undefined, 2)}\n`);
  const name = `${layout.files[0]?.name.replace(/\.onnx$/, "")}.index.json`;
  return { name, kind: "manifest", bytes: bytes.length, literals: [{ offset: 0, bytes }] };
}

function findPlacement(layout: ModelLayout, index: number | undefined): Placement | undefined {
  return index === undefined ? undefined : layout.placements.get(index)?.[0];
}
