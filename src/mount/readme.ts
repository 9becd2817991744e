/** README.md at the root of the mount: how to use it, for somebody who has nothing but a shell. */
export const README = `# bridle

Every coding agent of this machine, as files.

Ask agent \`default\` something:

    cd agents/default
    printf '{"prompt": "say hello", "harness": "echo"}' > inbox/.hello.tmp
    mv inbox/.hello.tmp inbox/hello.req.json
    cat outbox/hello.resp.json

Only the rename submits. A refused rename says why: its errno, and outbox/<id>.error.json.
The same id with the same content is the same request: it is not run twice.

    outbox/<id>.events.jsonl    what happens, line by line (tail -f)
    outbox/<id>.resp.json       the answer, when the run has ended
    sessions/<s>/               the conversation: messages.jsonl, events.jsonl, latest.md
    sessions/<s>/follow         its events as they come (cat)
    model harness system.md     controls of the agent: write a value to change it

    mkdir agents/<name>         makes an agent
    harnesses/<h>/info.json     what can run, and whether it is healthy
    status  status.json         health of the daemon
    audit.jsonl                 every acceptance, refusal and answer, hash-chained
`;
