"""Loads a folder in ONNX Runtime GenAI and prints, as JSON, what it answers to a question."""

import json
import sys

import onnxruntime_genai as genai

folder, question, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = genai.Model(folder)
tokenizer = genai.Tokenizer(model)
messages = json.dumps([{"role": "user", "content": question}])
prompt = tokenizer.encode(tokenizer.apply_chat_template(messages, add_generation_prompt=True))
parameters = genai.GeneratorParams(model)
parameters.set_search_options(max_length=len(prompt) + count, do_sample=False)
generator = genai.Generator(model, parameters)
generator.append_tokens(prompt)
while not generator.is_done():
    generator.generate_next_token()
answer = generator.get_sequence(0)[len(prompt):]
print(json.dumps({"prompt": [int(token) for token in prompt], "answer": tokenizer.decode(answer)}))
