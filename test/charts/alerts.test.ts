import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { z } from "zod";
import { errorCode, errorTable } from "../../src/contract/errors.ts";
import { prometheusMissing } from "../support/cluster/cluster-missing.ts";
import { chartFolder } from "./helm.ts";

const exec = promisify(execFile);
const of = 'job="model-optimization",namespace="models"';

/** Series by what they are until the fault, and from it on, in steps of 15 seconds. */
type Fault = readonly (readonly [series: string, before: string, after: string])[];

/** Of each alert a fault, from which on it has two minutes to fire. */
const faults: Readonly<Record<string, Fault>> = {
  ServiceUnreachable: [[`up{${of},container="service"}`, "1+0x20", "0+0x8"]],
  OperatorWithoutLeader: [
    [`leader_election_master_status{${of},container="operator"}`, "1+0x20", "0+0x8"],
  ],
  RequestsFail: [
    [`mos_http_request_seconds_count{${of},route="/v1/jobs",status="200"}`, "0+15x20", "300+15x8"],
    [`mos_http_request_seconds_count{${of},route="/v1/jobs",status="500"}`, "0+0x20", "3+3x8"],
  ],
  DiskNearlyFull: [
    [`mos_disk_free_bytes{${of}}`, "5000+0x20", "1900+0x8"],
    [`mos_disk_reserve_bytes{${of}}`, "1000+0x20", "1000+0x8"],
  ],
  JobsWaitLong: [[`mos_oldest_waiting_job_seconds{${of}}`, "1500+15x20", "1815+15x8"]],
  JobsFail: [
    [`mos_jobs_ended_total{${of},status="Failed",reason="worker_crashed"}`, "0+0x20", "1+1x8"],
    [`mos_jobs_ended_total{${of},status="Failed",reason="model_invalid"}`, "0+9x20", "180+9x8"],
  ],
  ReconciliationsFail: [
    [`mos_reconcile_seconds_count{${of},controller="batch",result="error"}`, "0+0x20", "1+1x8"],
  ],
  ReconciliationStuck: [
    [`workqueue_longest_running_processor_seconds{${of},name="batch"}`, "1+0x20", "75+15x8"],
  ],
  ApiServerUnreachable: [
    [`mos_kubernetes_call_seconds_count{${of},code="200"}`, "0+15x20", "300+0x8"],
    [`mos_kubernetes_call_seconds_count{${of},code="none"}`, "0+0x20", "15+15x8"],
  ],
  ReadsForbidden: [
    [`mos_kubernetes_call_seconds_count{${of},verb="watch",code="403"}`, "0+0x20", "1+1x8"],
  ],
  LogsUnread: [[`mos_pod_log_lag_seconds{${of}}`, "0+0x20", "0+15x8"]],
  LogsLost: [[`mos_pod_logs_lost_total{${of},reason="pod_deleted"}`, "0+0x20", "1+0x8"]],
  EventLoopBlocked: [[`nodejs_eventloop_lag_p99_seconds{${of},pod="s-1"}`, "0.01+0x20", "0.9+0x8"]],
};

const ruleFile = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
});

const rules = await readFile(join(chartFolder, "monitoring/rules.yaml"), "utf8");
const alerts = ruleFile.parse(parse(rules)).groups.flatMap((group) => group.rules);

test("every alert is tested, and has a section that says what to do", async () => {
  const names = alerts.map(({ alert }) => alert);
  const page = await readFile(join(import.meta.dirname, "../../docs/alerts.md"), "utf8");
  const sections = Array.from(page.matchAll(/^## (.*)$/gm), ([, title]) => title);
  assert.deepEqual(Object.keys(faults), names);
  assert.deepEqual(sections, names);
});

test("the alert on failed jobs names every error that is the service's own", () => {
  const { expr = "" } = alerts.find(({ alert }) => alert === "JobsFail") ?? {};
  const named = /reason=~"([^"]*)"/.exec(expr)?.[1]?.split("|").toSorted();
  const own = errorCode.options.filter((code) => errorTable[code].status >= 500).toSorted();
  assert.deepEqual(named, own);
});

for (const [alert, fault] of Object.entries(faults)) {
  test(`${alert} fires within 2 minutes of its fault`, { skip: prometheusMissing }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "alerts-"));
    try {
      await writeFile(join(folder, "rules.yaml"), rules.replaceAll("$NAMESPACE", "models"));
      await writeFile(join(folder, "test.yaml"), JSON.stringify(alertTest(alert, fault)));
      await exec("promtool", ["test", "rules", join(folder, "test.yaml")]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
}

/** The fault begins after 5 minutes and 15 seconds. */
function alertTest(alert: string, fault: Fault) {
  const firing = `count by (alertname) (ALERTS{alertstate="firing"})`;
  const labels = `{alertname="${alert}"}`;
  return {
    rule_files: ["rules.yaml"],
    evaluation_interval: "15s",
    tests: [
      {
        interval: "15s",
        input_series: [...fault, ...healthy(alert)].map(([series, before, after]) => ({
          series,
          values: `${before} ${after}`,
        })),
        promql_expr_test: [
          { expr: firing, eval_time: "5m", exp_samples: [] },
          { expr: firing, eval_time: "7m15s", exp_samples: [{ labels, value: 1 }] },
        ],
      },
    ],
  };
}

/** Series whose absence is a fault of its own. */
function healthy(alert: string): Fault {
  const names = ["ServiceUnreachable", "OperatorWithoutLeader"].filter((name) => name !== alert);
  return names
    .flatMap((name) => faults[name] ?? [])
    .map(([series, before]) => [series, before, "1+0x8"]);
}
