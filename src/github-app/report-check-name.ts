import type { ReportRecord } from "../records/jobs/insert-report.ts";

/**
 * The name of a report's check run. A plan proves nothing, so that it has another name than the
 * check that branch protection may require.
 */
export function reportCheckName({ settings, request }: ReportRecord): string {
  return request.dryRun ? `${settings.checkName} (dry run)` : settings.checkName;
}
