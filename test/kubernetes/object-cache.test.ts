import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { TextTemplates } from "../../src/kubernetes/object-cache.ts";

const anyObject = fc.record({
  name: fc.string({ unit: "grapheme" }),
  count: fc.option(fc.nat(), { nil: undefined }),
  labels: fc.dictionary(fc.string(), fc.string()),
  conditions: fc.array(fc.record({ type: fc.constantFrom("Ready", "Ended"), at: fc.date() })),
});

test("every text is found as it was, also those unlike the first", () => {
  fc.assert(
    fc.property(fc.array(anyObject, { maxLength: 100 }), (objects) => {
      const templates = new TextTemplates();
      const texts = objects.map((object) => JSON.stringify(object));
      const packed = texts.map((text) => templates.pack(text));
      assert.deepEqual(
        packed.map((text) => templates.unpack(text)),
        texts,
      );
    }),
  );
});

test("more shapes than templates are kept whole", () => {
  const templates = new TextTemplates();
  const texts = Array.from({ length: 100 }, (_, index) => JSON.stringify(Array(index).fill("a")));
  const objects = texts.map((list) => `{"list":${list}}`);
  const packed = objects.map((text) => templates.pack(text));
  assert.deepEqual(
    packed.map((text) => templates.unpack(text)),
    objects,
  );
  assert.equal(packed.at(-1), objects.at(-1));
});

test("of alike texts only the differences are kept", () => {
  const templates = new TextTemplates();
  const [first = "", second = ""] = ["a", "b"].map((name) =>
    JSON.stringify({ metadata: { name, namespace: "default" }, spec: { target: "gpu" } }),
  );
  templates.pack(first);
  const packed = templates.pack(second);
  assert.ok(packed.length < second.length / 4, packed);
  assert.equal(templates.unpack(packed), second);
});
