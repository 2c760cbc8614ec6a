// Rent or buy: what a training run on a thousand devices costs, either way.
import { estimateUtilityBill } from './client';
import { money, run } from './connection';
import { question } from './question';

run(async () => {
    const { data: bill } = await estimateUtilityBill({ body: question, throwOnError: true });
    console.log(`rent ${money(bill.rent.total)}, purchase ${money(bill.purchase.total)}`);
    if (bill.break_even_runs) {
        console.log(`the purchase pays itself back after ${bill.break_even_runs.value.toFixed(2)} runs`);
    }
    for (const gap of bill.gaps) console.log(`not known: ${gap.pointer}, ${gap.detail}`);
});
