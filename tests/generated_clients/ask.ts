/** Asks a service by the client that openapi-ts made: address, token, a file of questions and its digest. */

import { readFileSync } from 'node:fs';

import { createClient } from './generated/client';
import * as api from './generated/sdk.gen';
import type { Problem, RunRequest } from './generated/types.gen';

const [url, token, questions, digest] = process.argv.slice(2);
const client = createClient({ baseUrl: url, auth: token });

const told = (problem?: Problem) => [problem?.status, problem?.type.split('#').pop()];

async function ask() {
    const who = await api.whoamiShow({ client, throwOnError: true });
    const systems = await api.systemsIndex({ client, throwOnError: true });
    const body = new Blob([readFileSync(questions)]);
    await api.uploadsPut({ client, path: { digest }, query: { name: 'questions.jsonl' }, body, throwOnError: true });
    const request: RunRequest = { system: 'zero-shot', dataset: 'jsonl', questions: digest, model: 'scripted' };
    const runs = [];
    for (let time = 0; time < 2; time++) {
        const headers = { 'Idempotency-Key': 'key' };
        const submitted = await api.runsSubmit({ client, body: request, headers, throwOnError: true });
        runs.push(submitted.data.runs[0].run);
    }
    const path = { run: runs[0] };
    await api.runsCancel({ client, path, body: {}, throwOnError: true });
    const shown = await api.runsShow({ client, path, throwOnError: true });
    let last: unknown;
    const events = await api.liveRunEvents({ client, path, onSseEvent: (event) => { last = event.event; } });
    for await (const _ of events.stream) if (last === 'end') break;
    const missing = await api.runsShow({ client, path: { run: 'a/b' } });
    const refused = await api.runsSubmit({ client, body: { ...request, limit: 0 } });
    console.log(JSON.stringify({
        name: who.data.name,
        scopes: who.data.scopes,
        systems: systems.data.map((system) => system.name),
        runs,
        state: shown.data.state,
        last,
        missing: told(missing.error),
        refused: told(refused.error),
    }));
}

ask();
