import assert from "node:assert/strict";
import test from "node:test";
import {
  jobListAddress,
  parseJobFilters,
  searchAddress,
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
  ["target:cpu", "/jobs?target=cpu"],
  ["label: team=a", "/jobs?label=team%3Da"],
  [" detector.onnx ", "/jobs?model=detector.onnx"],
  ["", "/jobs"],
];

for (const [text, address] of searches) {
  test(`a search for "${text}" leads to ${address}`, () => {
    assert.equal(searchAddress(text, all), address);
  });
}
