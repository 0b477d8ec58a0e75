import { limits } from "../contract/limits.ts";

/** Silence after which an answer counts as lost; pings keep quiet streams open. */
export const silenceLimitMs = 4 * limits.pingSeconds * 1000;
