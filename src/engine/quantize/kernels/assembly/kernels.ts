// @ts-nocheck AssemblyScript: compiled into ../simd-module.ts, never run as TypeScript.
/* oxlint-disable */
export { roundColumns, roundRows } from "./blocks";
export { roundLinear, widenRanges } from "./linear";
export { fromHalves, toHalves } from "./halves";
