"""What scripts say, read by terminus-2's own parsers."""

from __future__ import annotations

import httpx
import pytest
from harbor.agents.terminus_2.terminus_json_plain_parser import TerminusJSONPlainParser
from harbor.agents.terminus_2.terminus_xml_plain_parser import TerminusXMLPlainParser

from seatrial.scripted_models.server import ScriptedModels
from tests.waiting import LIMIT_SEC

JSON = 'Answer as {"commands": [{"keystrokes": ""}]}'
XML = 'Answer as <keystrokes duration="1"></keystrokes>'


@pytest.mark.parametrize(("prompt", "parser"), [(JSON, TerminusJSONPlainParser()), (XML, TerminusXMLPlainParser())])
async def test_terminus_reads_both_of_its_formats(
    prompt: str, parser: TerminusJSONPlainParser | TerminusXMLPlainParser
) -> None:
    async with ScriptedModels() as models:
        for script in ("solve-read-the-screen", "give-up"):
            async with httpx.AsyncClient(trust_env=False, timeout=LIMIT_SEC) as client:
                body = {"model": script, "messages": [{"role": "user", "content": prompt}]}
                answer = await client.post(f"{models.base_url}/chat/completions", json=body)
            parsed = parser.parse_response(answer.json()["choices"][0]["message"]["content"])
            typed = [command.keystrokes.strip() for command in parsed.commands]
            assert (parsed.error, parsed.warning) == ("", "")
            assert (typed, parsed.is_task_complete) == (
                (["/app/challenge.sh"], False) if script == "solve-read-the-screen" else ([], True)
            )
