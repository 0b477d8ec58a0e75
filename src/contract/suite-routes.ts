import type { Route } from "./route.ts";
import { suiteHistory, suiteHistoryQuery, suiteList } from "./suite.ts";

export const suiteRoutes = {
  listSuites: {
    method: "GET",
    path: "/suites",
    summary: "List suites, those with the newest batches first",
    action: "readWork",
    replies: { 200: { json: suiteList } },
    errors: [],
  },
  getSuiteHistory: {
    method: "GET",
    path: "/suites/history",
    summary:
      "Read what a model of a suite measured for each target over the suite's newest batches",
    action: "readWork",
    query: suiteHistoryQuery,
    replies: { 200: { json: suiteHistory } },
    errors: [],
  },
} as const satisfies Record<string, Route>;
