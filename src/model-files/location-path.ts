import { posix } from "node:path";
import { isModelFilePath } from "../contract/models/manifest.ts";

/**
 * Where a location of external data leads, relative to the folder of the ONNX file; undefined where
 * that is not the path of a model's file.
 */
export function locationPath(location: string): string | undefined {
  const path = posix.normalize(location);
  return isModelFilePath(path) && !location.split("/").includes("..") ? path : undefined;
}
