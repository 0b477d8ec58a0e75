// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
export { roundColumns, roundRows } from "./blocks";
export { roundLinear, widenRanges } from "./linear";
export { fromBfloat16, fromHalves, toHalves } from "./halves";
