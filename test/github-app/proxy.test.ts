import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { startForwardProxy } from "../action/support/forward-proxy.ts";
import { startRunningService } from "../support/running-service.ts";
import { until } from "../support/until.ts";
import { gitHubAppFileContent, reportedBatch, startGitHubWithApp } from "./reported-batch.ts";

test("a service writes check runs through the proxy that its environment names", async (t) => {
  const { gitHub, credentials } = await startGitHubWithApp(t);
  const proxy = await startForwardProxy(t, { "github.example": new URL(gitHub.url).origin });
  const folder = await mkdtemp(path.join(tmpdir(), "app-"));
  t.after(() => rm(folder, { recursive: true }));
  const appFile = path.join(folder, "github-app.yaml");
  const apiUrl = "http://github.example";
  await writeFile(appFile, gitHubAppFileContent({ ...credentials, apiUrl }));
  const environment = {
    MOS_GITHUB_APP_FILE: appFile,
    MOS_PUBLIC_URL: "https://mos.example",
    HTTP_PROXY: proxy.url,
    NODE_USE_ENV_PROXY: "1",
  };
  const { client } = await startRunningService(t, { environment });
  await client.call("submitBatch", { body: reportedBatch(["one"]) });
  await until("the batch has a check run", () => gitHub.checkRuns().length > 0);
});
