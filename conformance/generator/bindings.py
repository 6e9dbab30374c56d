"""How tensors of any operator are bound."""
from generator import identity, scatter_elements, scatter_nd, top_k
from generator.pack import DOCUMENTATION, Group


def models():
    """A name, and a function that makes the model anew."""
    return (("top_k1", lambda: top_k.row("FLOAT16", [3, 9, 4, 1, 8], 2, top_k.DECREASING)),
            ("scatter_nd", lambda: scatter_nd.model([4, 2], [3, 1], [3, 0, 1], rank=4)),
            ("scatter_elements", lambda: scatter_elements.row(6, [5, 2, 1, 0], data_type="INT64")),
            ("identity", lambda: identity.row("UINT8", [1, 2, 3, 4, 5, 6, 7, 8])))


def groups():
    owned = Group("bindings/owned_by_dml", DOCUMENTATION,
                  "Inputs with OWNED_BY_DML are bound once, for initialisation.")
    offsets = Group("bindings/offsets", DOCUMENTATION,
                    "A tensor may begin anywhere in a buffer that the alignment allows; the bytes before and after "
                    "it do not change.")
    for name, make in models():
        inputs = [field for field in make().tensors if not field.startswith("Output")]
        for field in inputs:
            owned.add(f"{name}-{field}", f"{field} is owned by DirectML.", make().own(field))
        together, moved = make(), make()
        for field in inputs:
            together.own(field)
        if len(inputs) > 1:
            owned.add(f"{name}-all", "All inputs are owned by DirectML.", together)
        for field in make().tensors:
            offsets.add(f"{name}-{field}", f"{field} does not begin with its buffer.", make().shift(field))
            moved.shift(field)
        offsets.add(f"{name}-all", "No tensor begins with its buffer.", moved)
    return [owned, offsets]
