// What a live service tells the TypeScript client; `flows.py` asks the same. Written for `node flows.js URL KEY OFFER`.
import { etagOf, InvalidRequest, Ironlaw, NotFound, VersionConflict } from './index.js';
import type { CostEstimateRequest, OfferRequest, PlanRequest, Problem, UtilityBillRequest } from './index.js';

const [url = '', api_key = '', given = ''] = process.argv.slice(2);
const ironlaw = new Ironlaw({ url, api_key });
const offer = JSON.parse(given) as OfferRequest;

const question: CostEstimateRequest = {
    model: { source: 'parameter_count', parameter_count: 70_000_000_000 },
    cluster: { accelerator: { source: 'catalog', id: 'h100-sxm' }, accelerator_count: 1000 },
    workload: { kind: 'training', total_tokens: 2_000_000_000_000, sequence_length: 4096 },
    efficiency: { source: 'assumed', utilization: 0.5 },
    rental: { price_per_device_hour: { amount: '3', currency_code: 'USD' } },
};
const bill: UtilityBillRequest = {
    ...question,
    purchase: { price_per_device: { amount: '30000', currency_code: 'USD' } },
};
const plan: PlanRequest = {
    model: { source: 'catalog', id: 'llama-3.1-8b' },
    workload: { kind: 'training', sequence_length: 8192, global_batch_size: 64, total_tokens: 1_000_000_000 },
    goal: 'cheapest',
    search: { accelerators: ['h100-sxm'], accelerator_counts: [8] },
};

/** The problem that a call is refused with, of this kind. */
async function refused(call: Promise<unknown>, kind: typeof Problem): Promise<Problem> {
    const error: unknown = await call.then(() => undefined, (reason: unknown) => reason);
    if (error instanceof kind) return error;
    throw new Error(`not refused by ${kind.name}: ${String(error)}`);
}

async function toldOfEstimates() {
    const answer = await ironlaw.estimates.utilityBill(bill);
    const table = await ironlaw.estimates.costExport({ ...question, starts_at: '2026-12-01T00:00:00Z' });
    const unknown: UtilityBillRequest = { ...bill, model: { source: 'catalog', id: 'nothing' } };
    const refusal = await refused(ironlaw.estimates.utilityBill(unknown), InvalidRequest);
    const [error] = refusal.errors;
    const ids: string[] = [];
    for await (const row of ironlaw.accelerators.list({ page_size: 20, order_by: '-id' })) ids.push(row.id);
    return {
        rent: answer.rent.total?.amount,
        table: table.split('\n')[0]?.includes('BilledCost'),
        refused: [refusal.status, refusal.code, error?.pointer, error?.code],
        ids,
    };
}

async function toldOfAnOffer() {
    const { offers } = ironlaw;
    const created = await offers.create(offer);
    // The estimate sees the offer, because the client sends the revision of its write.
    const rented = await ironlaw.estimates.cost({ ...question, rental: { offer_id: offer.id } });
    const price = { price_per_instance_hour: { amount: '48', currency_code: 'USD' } };
    const changed = await offers.update(offer.id, price, { if_match: etagOf(created) });
    const stale = await refused(offers.update(offer.id, price, { if_match: etagOf(created) }), VersionConflict);
    await offers.delete(offer.id, { if_match: etagOf(changed) });
    const gone = await refused(offers.get(offer.id), NotFound);
    return {
        seen: rented.total?.amount,
        changed: [changed.version, changed.price_per_instance_hour?.amount],
        stale: stale.code,
        gone: gone.code,
    };
}

async function toldOfAPlan() {
    const { id } = await ironlaw.plans.create(plan);
    const { state, answer } = await ironlaw.plans.wait(id, { timeout_seconds: 60 });
    return [state, answer?.rows[0]?.rank];
}

async function toldOfAnApproval() {
    const quote = await ironlaw.quotes.create({ operation: 'utility-bill', name: 'Next quarter', request: bill });
    const submitted = await ironlaw.quotes.submit(quote.id, { content_digest: quote.content_digest });
    const approval = await ironlaw.approvals.wait(submitted.id, { timeout_seconds: 60 });
    return [quote.headlines.total?.amount, approval.state];
}

const told = { ...(await toldOfEstimates()), ...(await toldOfAnOffer()) };
console.log(JSON.stringify({ ...told, plan: await toldOfAPlan(), approval: await toldOfAnApproval() }));
