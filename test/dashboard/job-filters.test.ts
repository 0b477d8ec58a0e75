import assert from "node:assert/strict";
import test from "node:test";
import {
  jobListAddress,
  parseJobFilters,
  readSearch,
} from "../../src/dashboard/jobs/job-filters.ts";

const all = parseJobFilters("/jobs");

test("filters survive their address", () => {
  const address = "/jobs?status=Failed&status=Completed&target=cpu&label=team%3Da&label=ci";
  assert.equal(jobListAddress(parseJobFilters(address)), address);
  assert.equal(jobListAddress(all), "/jobs");
});

test("what an address has besides filters is ignored", () => {
  assert.deepEqual(parseJobFilters("/jobs?status=Broken&x=%3Cscript%3E"), all);
});

const searches: [string, string][] = [
  [`job-${"0".repeat(26)}`, `/jobs/job-${"0".repeat(26)}`],
  [`batch-${"0".repeat(26)}`, `/jobs?batch=batch-${"0".repeat(26)}`],
  ["target:cpu", "/jobs?target=cpu"],
  ["label: team=a", "/jobs?label=team%3Da"],
  [" detector.onnx ", "/jobs?search=detector.onnx"],
  ["upload:sha256:abc", "/jobs?model=upload%3Asha256%3Aabc"],
  ["hf://a/b@c/m.onnx", "/jobs?model=hf%3A%2F%2Fa%2Fb%40c%2Fm.onnx"],
  [
    "label:team=vision target:cpu vad status:failed",
    "/jobs?status=Failed&target=cpu&label=team%3Dvision&search=vad",
  ],
  ["", "/jobs"],
];

for (const [text, address] of searches) {
  test(`a search for "${text}" leads to ${address}`, () => {
    assert.deepEqual(readSearch(text, all), { address });
  });
}

test("what a search does not know is named, with what there is", () => {
  assert.deepEqual(readSearch("vad owner:ada", all), {
    problem:
      'There is no filter "owner". Filters are status, target, model, batch, label, as in target:cpu.',
  });
  const found = readSearch("status:broken", all);
  assert.match(
    "problem" in found ? found.problem : "",
    /^"broken" is not a status. Statuses are Pending, /,
  );
});
