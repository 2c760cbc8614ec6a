// Give a cost centre a budget, and read what quotes, approvals and bills have left of it.
import { createBudget, createCostCenter, getBudget } from './client';
import type { BudgetRequest } from './client';
import { money, run } from './connection';

run(async () => {
    const [name] = process.argv.slice(2);
    if (!name) throw new Error('give the id of a cost centre');
    const body: BudgetRequest = {
        id: `${name}-2027`,
        name: `${name}, 2027`,
        cost_center_id: name,
        starts_on: '2027-01-01',
        ends_on: '2027-12-31',
        amount: { amount: '2000000', currency_code: 'USD' },
        thresholds: [0.8, 1.0],
        enforcement: 'block',
    };
    await createCostCenter({ body: { id: name, name }, throwOnError: true });
    await createBudget({ body, throwOnError: true });
    const { data: budget } = await getBudget({ path: { id: body.id }, throwOnError: true });
    console.log(`committed ${money(budget.committed)}, spent ${money(budget.spent)}, left ${money(budget.remaining)}`);
});
