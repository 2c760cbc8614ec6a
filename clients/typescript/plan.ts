// The cheapest of several ways to train a model: a search that is waited for.
import { createPlan, getPlan } from './client';
import type { Plan, PlanRequest, RentedDevices } from './client';
import { money, run, wait } from './connection';

const devices = (id: string, amount: string): RentedDevices => ({
    name: `${id} at ${amount} USD`,
    cluster: { accelerator: { source: 'catalog', id }, accelerator_count: 16 },
    rental: { price_per_device_hour: { amount, currency_code: 'USD' } },
});

const question: PlanRequest = {
    model: { source: 'catalog', id: 'llama-3.1-8b' },
    workload: { kind: 'training', sequence_length: 8192, global_batch_size: 64, total_tokens: 1_000_000_000 },
    goal: 'cheapest',
    rented: [devices('h100-sxm', '2.50'), devices('a100-sxm-80gb', '1.30')],
    search: { offers: false, accelerator_counts: [8, 16] },
};

run(async () => {
    let plan: Plan = (await createPlan({ body: question, throwOnError: true })).data;
    while (plan.state === 'running') {
        await wait(500);
        plan = (await getPlan({ path: { id: plan.id }, throwOnError: true })).data;
    }
    if (!plan.answer) throw new Error(`the plan is ${plan.state}: ${plan.error_summary ?? ''}`);
    for (const row of plan.answer.rows.slice(0, 3)) {
        const layout = `tensor ${row.parallelism.tensor}, sharding ${row.parallelism.sharding}`;
        console.log(`${row.rank}. ${row.supply.name}: ${row.accelerator_count} devices, ${layout}, ${money(row.cost)}`);
    }
});
