"""A model that says what a test wants, in the format of OpenAI's chat completions, streamed.

What it answers depends on the conversation alone: step n of the script is the answer to a
conversation in which the model has spoken n times.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

Step = Union[str, Sequence[Tuple[str, Dict[str, Any]]]]


def run(command: str) -> Step:
    """A step that runs a command."""
    return [("runtime", {"action": "exec", "command": command})]


class Model:
    def __init__(self, script: List[Step]) -> None:
        self.script = script
        self.keys: List[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = json.loads(self.rfile.read(length))
                model.keys.append(self.headers["authorization"])
                content = "".join(f"data: {chunk}\n\n" for chunk in model.chunks(body)).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def configuration(self) -> str:
        url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        lines = [
            "[[model]]",
            'name = "scripted"',
            'format = "chat-completions"',
            'model = "test-1"',
            f'base-url = "{url}"',
            'key-env = "MODEL_KEY"',
            "input-price = 1.0",
            "output-price = 2.0",
        ]
        return "\n".join(lines) + "\n"

    def chunks(self, body: Dict[str, Any]) -> Iterator[str]:
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        step = self.script[spoken] if spoken < len(self.script) else "the script is over"
        if isinstance(step, str):
            for at in range(0, len(step), 5):
                yield json.dumps({"choices": [{"delta": {"content": step[at : at + 5]}}]})
        else:
            for index, (name, given) in enumerate(step):
                call = {
                    "index": index,
                    "id": f"call_{spoken}_{index}",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                yield json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]})
        reason = "stop" if isinstance(step, str) else "tool_calls"
        yield json.dumps({"choices": [{"delta": {}, "finish_reason": reason}]})
        yield json.dumps({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}})
        yield "[DONE]"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
