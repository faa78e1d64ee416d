// SPDX-License-Identifier: Apache-2.0
// Whoever does the elements of a loop, as the levels of a mapping say, makes the bits that the loop makes by itself.
#include "random/checker.h"

#include "base/status.h"
#include "map/map.h"
#include "schedule/schedule.h"
#include "support/map_nest.h"
#include "support/nest_eval.h"
#include "support/opcases.h"

static uint32_t draw(struct checker *c, uint32_t n)
{
    return (uint32_t)(opcase_random(&c->state) * n);
}

static void map_to_lanes(struct checker *c, struct nest *n)
{
    if (map_jam(n))
        nest_collapse(n);
    map_stage(n);
    map_to_host(n, &(struct map_host){16u << draw(c, 3), (enum map_form)draw(c, 3)});
}

static struct nest *again(struct checker *c, const struct nest *n)
{
    struct strbuf text = strbuf_make(c->m->arena);
    struct nest **nests = NULL;
    int count;
    nest_print(&text, n);
    return nest_parse(c->m->arena, text.text, &count, &nests) == JOT_OK ? nests[0] : NULL;
}

bool check_shares(struct checker *c)
{
    bool is_gpu = draw(c, 4) != 0;
    struct nest_program *p;
    struct schedule_options options = schedule_options_of(is_gpu);
    options.no_gemm = true;
    options.large = draw(c, 2) != 0;
    const struct ir_graph *g = ir_function(c->m, check_final(c, c->f));
    if (pass_schedule(c->m->arena, g, &options, &p) != JOT_OK)
        return check_refuse(c, "schedule");
    if (!check_is_quick(p, 1e6) || nest_program_has_routines(p))
        return true;
    struct checker asked = *c;
    struct ir_tensor *want, *got;
    struct nest **plain = arena_array(c->m->arena, struct nest *, p->nests.count + 1);
    struct nest **mapped = arena_array(c->m->arena, struct nest *, p->nests.count + 1);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        plain[i] = p->nests.at[i];
        mapped[i] = again(c, plain[i]);
        if (!mapped[i])
            return check_refuse(c, "parser of nests");
        mapped[i]->choices = draw(c, 1u << NEST_CHOICES);
        if (is_gpu) {
            map_nest_as_if_longer(c->m->arena, mapped[i], draw(c, 1u << 16));
            plain[i] = nest_without_levels(c->m->arena, mapped[i]);
        } else {
            map_to_lanes(c, mapped[i]);
        }
        if (nest_verify(mapped[i], c->why)) {
            nest_print(c->why, mapped[i]);
            return false;
        }
    }
    p->nests.at = plain;
    if (check_interpret(c, p, &want) != JOT_OK) {
        schedule_print(c->why, p);
        return check_refuse(c, "interpreter of nests");
    }
    p->nests.at = mapped;
    asked.out = want;
    if (check_interpret(c, p, &got) == JOT_OK && check_outputs(&asked, "mapped", got))
        return true;
    schedule_print(c->why, p);
    return check_refuse(c, "mapped nests");
}
