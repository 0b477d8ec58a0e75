import { reachedOrigin } from "../../contract/people/may.ts";
import type { SuiteBatch } from "../../contract/batches/suite.ts";
import type { ReportRecord } from "../../records/jobs/insert-report.ts";
import type { RouteHandlers } from "../http/bind-routes.ts";
import type { ServerContext } from "../http/server-context.ts";

export const suiteHandlers: Pick<RouteHandlers, "listSuites" | "getSuiteHistory"> = {
  async listSuites({ records }, { caller }) {
    const search = { project: caller.project, ...reachedOrigin(caller, "readWork") };
    return { status: 200, json: { suites: await records.suites.list(search) } };
  },

  async getSuiteHistory({ records, github }, { caller, query }) {
    const search = { project: caller.project, ...reachedOrigin(caller, "readWork") };
    const history = await records.suites.readHistory(search, query);
    const batches = history.batches.map(({ id, createdAt, revision, report }) => ({
      id,
      createdAt,
      revision,
      check: describeCheck(github, report),
    }));
    return { status: 200, json: { ...history, batches } };
  },
};

/** Where people find a batch's report; its commit is the check run's. */
function describeCheck(
  github: ServerContext["github"],
  report: ReportRecord | undefined,
): SuiteBatch["check"] {
  if (github === undefined || report === undefined) return null;
  const { repository, sha } = report.settings;
  const address = `${github.webUrl}/${repository}`;
  return {
    repository,
    url: report.checkRun === null ? null : `${address}/runs/${report.checkRun}`,
    commitUrl: `${address}/commit/${sha}`,
  };
}
