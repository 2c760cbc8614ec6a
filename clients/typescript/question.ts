// A training run on a thousand devices, rented or bought.
import type { UtilityBillRequest } from './client';

export const question: UtilityBillRequest = {
    model: { source: 'parameter_count', parameter_count: 70_000_000_000 },
    workload: { kind: 'training', total_tokens: 2_000_000_000_000, sequence_length: 4096 },
    cluster: { accelerator: { source: 'catalog', id: 'h100-sxm' }, accelerator_count: 1000 },
    efficiency: { source: 'assumed', utilization: 0.5 },
    rental: { price_per_device_hour: { amount: '3', currency_code: 'USD' } },
    purchase: { price_per_device: { amount: '30000', currency_code: 'USD' } },
};
