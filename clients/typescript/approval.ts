// Quote a run, ask for its approval and follow it until it is decided; 0 where it is approved.
import { randomUUID } from 'node:crypto';
import { createQuote, getApproval, submitQuote } from './client';
import type { Approval } from './client';
import { money, retried, run, wait } from './connection';
import { question } from './question';

run(async () => {
    const body = { operation: 'utility-bill' as const, name: 'Pre-training, next quarter', request: question };
    // A request whose key the service has seen gets the first answer again, and nothing is done twice.
    const key = { 'Idempotency-Key': randomUUID() };
    const { data: quote } = await retried(() => createQuote({ body, headers: key, throwOnError: true }));
    const seen = { path: { id: quote.id }, body: { content_digest: quote.content_digest } };
    console.log(`quote ${quote.id}: ${money(quote.headlines.total)}`);
    const asked = await submitQuote({ ...seen, query: { validate_only: true }, throwOnError: true });
    for (const step of asked.data.steps) console.log(`${step.name}: ${step.quorum} of ${step.approvers.join(', ')}`);
    const headers = { 'Idempotency-Key': randomUUID() };
    let approval: Approval = (await retried(() => submitQuote({ ...seen, headers, throwOnError: true }))).data;
    console.log(`approval ${approval.id} waits`);
    while (approval.state === 'pending') {
        await wait(1000);
        approval = (await getApproval({ path: { id: approval.id }, throwOnError: true })).data;
    }
    for (const step of approval.steps) {
        for (const decision of step.decisions) console.log(`${decision.decided_by} says ${decision.decision}`);
    }
    console.log(approval.state);
    process.exitCode = approval.state === 'approved' ? 0 : 1;
});
