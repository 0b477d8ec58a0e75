import assert from "node:assert/strict";
import test from "node:test";
import { ChangeSignal, until } from "./until.ts";

test("until() gives what its check finds, and fails as the check does", async () => {
  const answers: (string | false | undefined)[] = [undefined, false, "found"];
  assert.equal(await until("it is found", () => answers.shift()), "found");
  const broken = () => Promise.reject(new Error("Broken"));
  await assert.rejects(until("it is found", broken), { message: "Broken" });
});

test("a wait for a change ends with the change, and says after the limit what did not come", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const signal = new ChangeSignal();
  let count = 0;
  const waiting = signal.until("there are two", () => count === 2);
  const inVain = assert.rejects(
    signal.until("there are three", () => count === 3),
    { message: "It did not come about within 240 s that there are three" },
  );
  for (; count < 2; count++) signal.notify();
  signal.notify();
  assert.equal(await waiting, true);
  t.mock.timers.tick(240_000);
  await inVain;
});
