"""Loads a folder in ONNX Runtime GenAI and lets it answer; prints what loading took and the most resident memory as JSON.

Usage: load_folder.py FOLDER
"""

import json
import resource
import sys
import time

import onnxruntime_genai as genai

start = time.process_time()
model = genai.Model(sys.argv[1])
cpu_seconds = time.process_time() - start
tokenizer = genai.Tokenizer(model)
messages = json.dumps([{"role": "user", "content": "What is the capital of France?"}])
prompt = tokenizer.encode(tokenizer.apply_chat_template(messages, add_generation_prompt=True))
parameters = genai.GeneratorParams(model)
parameters.set_search_options(max_length=len(prompt) + 40, do_sample=False)
generator = genai.Generator(model, parameters)
generator.append_tokens(prompt)
while not generator.is_done():
    generator.generate_next_token()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"cpuSeconds": cpu_seconds, "peakBytes": peak}))
