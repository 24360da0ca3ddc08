"""ops/taken.txt, from which help() says what dtypes an operator takes, is what Ember does."""
import taken


def test_the_list_is_what_operators_take():
    with open(taken.PATH, encoding="utf-8") as file:
        there = file.read().splitlines()
    assert len(there) > 850
    measured = taken.measure().splitlines()
    assert sorted(set(measured) ^ set(there)) == [], "tests/ops/taken.py --write"
