// The three flows; each generated client gives its own calls.
import type { Approval, Plan, PlanRequest, Quote, QuoteRequest, UtilityBill, UtilityBillRequest } from './shapes';

export interface Calls {
    bill(body: UtilityBillRequest): Promise<UtilityBill>;
    createPlan(body: PlanRequest): Promise<Plan>;
    getPlan(id: string): Promise<Plan>;
    createQuote(body: QuoteRequest): Promise<Quote>;
    submitQuote(id: string, digest: string): Promise<Approval>;
    getApproval(id: string): Promise<Approval>;
}

export const address = process.env.IRONLAW_URL ?? '';
export const authorization = `Bearer ${process.env.IRONLAW_API_KEY}`;
const wait = () => new Promise((done) => setTimeout(done, 500));
const rental = (amount: string) => ({ price_per_device_hour: { amount, currency_code: 'USD' } });
const rented = (id: string, amount: string) => ({
    name: id,
    cluster: { accelerator: { source: 'catalog' as const, id }, accelerator_count: 16 },
    rental: rental(amount),
});
const question: UtilityBillRequest = {
    model: { source: 'parameter_count', parameter_count: 70_000_000_000 },
    workload: { kind: 'training', total_tokens: 2_000_000_000_000, sequence_length: 4096 },
    cluster: { accelerator: { source: 'catalog', id: 'h100-sxm' }, accelerator_count: 1000 },
    efficiency: { source: 'assumed', utilization: 0.5 },
    rental: rental('3'),
    purchase: { price_per_device: { amount: '30000', currency_code: 'USD' } },
};
const search: PlanRequest = {
    model: { source: 'catalog', id: 'llama-3.1-8b' },
    workload: { kind: 'training', sequence_length: 8192, global_batch_size: 64, total_tokens: 1_000_000_000 },
    goal: 'cheapest',
    rented: [rented('h100-sxm', '2.50'), rented('a100-sxm-80gb', '1.30')],
    search: { offers: false, accelerator_counts: [8, 16] },
};

async function estimate(calls: Calls) {
    const bill = await calls.bill(question);
    const [rent, purchase] = [bill.rent.total, bill.purchase.total];
    console.log(`rent ${rent?.amount} ${rent?.currency_code}, purchase ${purchase?.amount} ${purchase?.currency_code}`);
    console.log(`the purchase pays itself back after ${bill.break_even_runs?.value.toFixed(2)} runs`);
}

async function plan(calls: Calls) {
    let found = await calls.createPlan(search);
    while (found.state === 'running') {
        await wait();
        found = await calls.getPlan(found.id);
    }
    for (const row of found.answer?.rows.slice(0, 3) ?? []) console.log(`${row.rank}. ${row.supply.name}`);
}

async function approval(calls: Calls) {
    const quote = await calls.createQuote({ operation: 'utility-bill', name: 'Next quarter', request: question });
    let asked = await calls.submitQuote(quote.id, quote.content_digest);
    while (asked.state === 'pending') {
        await wait();
        asked = await calls.getApproval(asked.id);
    }
    for (const step of asked.steps) {
        for (const decision of step.decisions) console.log(`${decision.decided_by} says ${decision.decision}`);
    }
    console.log(asked.state);
}

export function run(calls: Calls) {
    const flow = { estimate, plan, approval }[process.argv[2] as 'estimate' | 'plan' | 'approval'];
    flow(calls).catch((error) => {
        console.error(error);
        process.exitCode = 1;
    });
}
