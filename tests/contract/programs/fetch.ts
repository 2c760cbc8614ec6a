import { ApprovalsApi, Configuration, EstimatesApi, PlansApi, QuotesApi } from './client';
import * as shapes from './client/models';

const settings = new Configuration({
    basePath: process.env.IRONLAW_URL,
    accessToken: process.env.IRONLAW_API_KEY,
});
const wait = () => new Promise((done) => setTimeout(done, 500));
const devices = (id: string, acceleratorCount: number) => ({
    accelerator: { source: 'catalog' as const, id },
    acceleratorCount,
});
const rental = (amount: string) => ({ pricePerDeviceHour: { amount, currencyCode: 'USD' } });
const question: shapes.UtilityBillRequest = {
    model: { source: 'parameter_count', parameterCount: 70_000_000_000 },
    workload: { kind: 'training', totalTokens: 2_000_000_000_000, sequenceLength: 4096 },
    cluster: devices('h100-sxm', 1000),
    efficiency: { source: 'assumed', utilization: 0.5 },
    rental: rental('3'),
    purchase: { pricePerDevice: { amount: '30000', currencyCode: 'USD' } },
};

async function estimate() {
    const bill = await new EstimatesApi(settings).estimateUtilityBill({ utilityBillRequest: question });
    const [rent, purchase] = [bill.rent.total, bill.purchase.total];
    console.log(`rent ${rent?.amount} ${rent?.currencyCode}, purchase ${purchase?.amount} ${purchase?.currencyCode}`);
    console.log(`the purchase pays itself back after ${bill.breakEvenRuns?.value.toFixed(2)} runs`);
}

async function plan() {
    const plans = new PlansApi(settings);
    let found = await plans.createPlan({ planRequest: {
        model: { source: 'catalog', id: 'llama-3.1-8b' },
        workload: { kind: 'training', sequenceLength: 8192, globalBatchSize: 64, totalTokens: 1_000_000_000 },
        goal: 'cheapest',
        rented: [
            { name: 'h100', cluster: devices('h100-sxm', 16), rental: rental('2.50') },
            { name: 'a100', cluster: devices('a100-sxm-80gb', 16), rental: rental('1.30') },
        ],
        search: { offers: false, acceleratorCounts: [8, 16] },
    } });
    while (found.state === 'running') {
        await wait();
        found = await plans.getPlan({ id: found.id });
    }
    for (const row of found.answer?.rows.slice(0, 3) ?? []) console.log(`${row.rank}. ${row.supply.name}`);
}

async function approval() {
    const quotes = new QuotesApi(settings);
    const quote = await quotes.createQuote({
        quoteRequest: { operation: 'utility-bill', name: 'Next quarter', request: question },
    });
    const seen = { id: quote.id, quoteSubmissionRequest: { contentDigest: quote.contentDigest } };
    let asked = await quotes.submitQuote(seen);
    while (asked.state === 'pending') {
        await wait();
        asked = await new ApprovalsApi(settings).getApproval({ id: asked.id });
    }
    for (const step of asked.steps) {
        for (const decision of step.decisions) console.log(`${decision.decidedBy} says ${decision.decision}`);
    }
    console.log(asked.state);
}

const flow = { estimate, plan, approval }[process.argv[2] as 'estimate' | 'plan' | 'approval'];
flow().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
