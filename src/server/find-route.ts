import type { Context } from "hono";
import { matchedRoutes } from "hono/route";

/** The path of the route that answers, with the names of its parameters; undefined for none. */
export function findRoute(c: Context): string | undefined {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith("*"))?.path;
}
