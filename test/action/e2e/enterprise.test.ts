import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { realModel } from "../../support/real-models.ts";
import { startRunningService } from "../../support/running-service.ts";
import { startForwardProxy } from "../support/forward-proxy.ts";
import { startGitHub } from "../support/github-double.ts";
import { startIdentityProvider } from "../support/identity-provider.ts";
import { prepareRunner } from "../support/runner.ts";
import { workflowEvents } from "../support/workflow-event.ts";

test("a step behind a proxy reaches GitHub Enterprise Server, its issuer of tokens and the service", async (t) => {
  const runner = await prepareRunner(t);
  const issuing = await startIdentityProvider(t);
  const policy = {
    issuers: [{ issuer: issuing.issuer, audience: "http://mos.example" }],
    policies: [
      {
        name: "models",
        issuer: issuing.issuer,
        claims: { repository_owner_id: "9919", repository_id: "1296269" },
        scopes: ["jobs:read", "jobs:write", "models:write"],
      },
    ],
  };
  const policyFile = path.join(runner.workspace, "policy.yaml");
  await writeFile(policyFile, JSON.stringify(policy));
  const service = await startRunningService(t, {
    environment: { MOS_TRUST_POLICY_FILE: policyFile },
  });
  const gitHub = await startGitHub(t, { root: "/api/v3" });
  const proxy = await startForwardProxy(t, {
    "github.example": new URL(gitHub.url).origin,
    "issuer.example": issuing.issuer,
    "mos.example": new URL(service.baseUrl).origin,
  });
  await copyFile(realModel("ocr-orientation"), path.join(runner.workspace, "orientation.onnx"));
  const { pathname, search } = new URL(issuing.environment.ACTIONS_ID_TOKEN_REQUEST_URL);
  const step = await runner.start(
    {
      "service-url": "http://mos.example",
      "github-token": gitHub.token,
      models: "*.onnx",
      targets: "cpu",
      recipe: "evaluation: { level: weights }",
      comment: "true",
    },
    {
      event: workflowEvents.pullRequest,
      environment: {
        HTTP_PROXY: proxy.url,
        HTTPS_PROXY: proxy.url,
        http_proxy: proxy.url,
        https_proxy: proxy.url,
        NO_PROXY: "",
        GITHUB_API_URL: "http://github.example/api/v3",
        GITHUB_SERVER_URL: "http://github.example",
        ...issuing.environment,
        ACTIONS_ID_TOKEN_REQUEST_URL: `http://issuer.example${pathname}${search}`,
      },
    },
  );
  const { code, outputs, log, visibleLines } = await step.ended;
  assert.equal(code, 0, log);
  assert.equal(outputs["conclusion"], "success");
  assert.deepEqual(issuing.audiences, ["http://mos.example"]);
  assert.deepEqual([...new Set(proxy.hosts)].toSorted(), [
    "github.example",
    "issuer.example",
    "mos.example",
  ]);
  assert.equal(gitHub.checkRuns().length, 2);
  assert.equal(gitHub.comments(7).length, 1);
  assert.ok(!visibleLines.some((line) => line.includes("mos_")));
});
