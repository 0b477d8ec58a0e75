import { awaySince } from "./service-changes.ts";

/** Calls each time that the service is back after an absence. @returns a function that ends it */
export function whenBack(listener: () => void): () => void {
  let wasAway = false;
  return awaySince.subscribe((since) => {
    const isBack = wasAway && since === undefined;
    wasAway = since !== undefined;
    if (isBack) listener();
  });
}
