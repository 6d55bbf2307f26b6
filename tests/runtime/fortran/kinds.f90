! Arrays of every type and many ranks through the Fortran module, on any number of ranks; no MPI. What is restored is compared with what was put there.
!
!     kinds         fills and saves, or, when there is a checkpoint, looks at what came back
!     kinds errors  says what wrong calls return
!     kinds stop    makes a wrong call without stat
module notes
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
  use, intrinsic :: iso_fortran_env, only: real32, real64
  implicit none
  type :: cell
    complex(real64) :: z
    real(real64) :: r
  end type
  type :: uneven
    complex(real32) :: z
    real(real32) :: r
  end type
  integer :: rank, ranks
  integer, target :: noted(3), copies = 0
contains
  subroutine collect(user) bind(C)
    type(c_ptr), value :: user
    integer, pointer :: count
    call c_f_pointer(user, count)
    count = count + 1
    noted(:2) = [rank, ranks]
  end subroutine
end module

program kinds
  use, intrinsic :: iso_c_binding, only: c_bool, c_loc
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use cairn
  use notes
  implicit none

  integer, parameter :: n = 12
  integer :: first, m, i, faults, code
  character(10) :: mode
  type(cairn_session) :: session
  type(cairn_report) :: report
  integer(int8), target :: i1(n)
  integer(int16), target :: i2(n)
  integer(int32), target :: i4(n)
  integer(int64), target :: i8(n)
  real(real32), target :: r4(n)
  real(real64), target :: r8(n), scalar, seven(2, 1, 2, 3, 1, 2, 2)
  complex(real32), target :: c4(n)
  complex(real64), target :: c8(2, n)
  logical(c_bool), target :: b1(n)
  logical, target :: b4(n)
  ! The middle of planes with a halo of two cells, and every other column of them; halos keep what they have.
  integer, target :: plane(-1:7, -1:2 * n + 2), twins(4, n)
  type(cell), target :: cells(n)
  type(uneven), target :: unevens(n)
  integer, pointer :: swapped(:)
  integer, target :: front(3), back(3)
  integer, target :: own(2)
  integer(int8), pointer :: bytes(:)

  call get_command_argument(1, mode)
  rank = from_environment('SLURM_PROCID')
  ranks = from_environment('SLURM_NTASKS')
  first = n * rank / ranks
  m = n * (rank + 1) / ranks - first

  call cairn_open(session, name='kinds')
  if (mode == 'errors') call errors()
  if (mode == 'stop') call cairn_add_output(session, '/there/is/no/such/folder')
  if (.not. cairn_active(session)) error stop 'not protected'

  call fill(-1)
  call add_items()
  call cairn_restore(session, report)
  if (.not. report%restored) then
    call fill(100)
    if (rank == 0) call cairn_save(session, tag='first')
    call cairn_metric(session, 'loss', 0.5_real64)
    call cairn_step(session, 1)
    call cairn_quiet_begin(session)
    call cairn_quiet_end(session)
    call cairn_wait(session)
    if (copies == 0) error stop 'collect was not called'
    print '(a, i0)', 'saved ', rank
    stop
  end if
  if (report%step /= 1 .or. report%label /= 1 .or. report%finished .or. len(report%run_id) /= 16) error stop 'report'
  faults = 0
  do i = 1, m
    call expect('int8', int(i1(i)) == first + i)
    call expect('int16', int(i2(i)) == 1000 + first + i)
    call expect('int32', i4(i) == 100000 + first + i)
    call expect('int64', i8(i) == 10000000000_int64 + first + i)
    call expect('real32', r4(i) == 0.5 * (first + i))
    call expect('real64', r8(i) == 0.1_real64 * (first + i))
    call expect('complex32', c4(i) == cmplx(first + i, -1))
    call expect('complex64', all(c8(:, i) == [cmplx(first + i, 7, real64), cmplx(8, first + i, real64)]))
    call expect('bool', logical(b1(i)) .eqv. modulo(first + i, 3) == 0)
    call expect('logical', b4(i) .eqv. modulo(first + i, 2) == 0)
    call expect('plane', all(plane(1:5, 2 * i - 1) == [1, 2, 3, 4, 5] + 10 * (first + i)))
    call expect('columns between', all(plane(:, 2 * i) == -1))
    call expect('halo', all(plane(-1:0, 2 * i - 1) == -1) .and. all(plane(6:7, 2 * i - 1) == -1))
    call expect('upper', all(twins(:2, i) == [1, 2] + 10 * (first + i)))
    call expect('lower', all(twins(3:, i) == [3, 4] + 10 * (first + i)))
    call expect('component', cells(i)%z == cmplx(first + i, 9, real64))
    call expect('other component', cells(i)%r == -1)
  end do
  call expect('scalar', scalar == 2.5_real64)
  call expect('seven', all(reshape(seven, [48]) == [(real(i, real64), i=1, 48)]))
  call expect('swapped', all(back == [7, 8, 9]) .and. all(front == -1))
  call expect('blob', all(own == merge(rank, -1, ranks == report%world_size_saved)))
  do i = 0, report%world_size_saved - 1
    call cairn_saved_blob(session, 'noted', i, bytes)
    call expect('noted', all(transfer(bytes, noted) == [i, report%world_size_saved, -1]))
  end do
  print '(a, i0)', 'wrong ', faults
  call cairn_finalize(session, code)
  print '(a, i0)', 'finalize ', code

contains

  subroutine add_items()
    type(cairn_piece) :: pieces(2)
    integer(int64) :: shape64(1), offset64(1)
    shape64 = n
    offset64 = first
    call cairn_add_array(session, 'int8', cairn_piece(i1(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'int16', cairn_piece(i2(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'int32', cairn_piece(i4(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'int64', cairn_piece(i8(:m)), shape64, offset64)
    call cairn_add_array(session, 'real32', cairn_piece(r4(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'real64', cairn_piece(r8(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'complex32', cairn_piece(c4(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'complex64', cairn_piece(c8(:, :m)), shape=[2, n], offset=[0, first])
    call cairn_add_array(session, 'bool', cairn_piece(b1(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'logical', cairn_piece(b4(:m)), shape=[n], offset=[first])
    call cairn_add_array(session, 'plane', cairn_piece(plane(1:5, 1:2 * m:2)), shape=[5, n], offset=[0, first])
    pieces = [cairn_piece(twins(:2, :m)), cairn_piece(twins(3:, :m))]
    call cairn_add_array(session, 'twins', pieces, shape=[4, n], offsets=reshape([0, first, 2, first], [2, 2]))
    call cairn_add_array(session, 'component', cairn_piece(cells(:m)%z), shape=[n], offset=[first])
    call cairn_add_array(session, 'scalar', cairn_piece(scalar))
    call cairn_add_array(session, 'seven', cairn_piece(seven))
    swapped => front
    call cairn_add_array(session, 'swapped', cairn_piece(swapped))
    swapped => back
    call cairn_update(session, 'swapped', cairn_piece(swapped))
    call cairn_add_blob(session, 'own', cairn_piece(own), CAIRN_BLOB_RESEED)
    call cairn_add_blob(session, 'noted', cairn_piece(noted), CAIRN_BLOB_MERGE)
    call cairn_on_copy(session, collect, c_loc(copies))
  end subroutine

  ! What a saved state has for 100, and nothing that a state has for −1.
  subroutine fill(what)
    integer, intent(in) :: what
    i1 = -1; i2 = -1; i4 = -1; i8 = -1; r4 = -1; r8 = -1; c4 = -1; c8 = -1; plane = -1; twins = -1
    scalar = -1; seven = -1; front = -1; back = -1; own = -1; noted = -1; b1 = .true.; b4 = .true.
    cells = cell(-1, -1)
    if (what < 0) return
    do i = 1, m
      i1(i) = int(first + i, int8)
      i2(i) = int(1000 + first + i, int16)
      i4(i) = 100000 + first + i
      i8(i) = 10000000000_int64 + first + i
      r4(i) = 0.5 * (first + i)
      r8(i) = 0.1_real64 * (first + i)
      c4(i) = cmplx(first + i, -1)
      c8(:, i) = [cmplx(first + i, 7, real64), cmplx(8, first + i, real64)]
      b1(i) = modulo(first + i, 3) == 0
      b4(i) = modulo(first + i, 2) == 0
      plane(1:5, 2 * i - 1) = [1, 2, 3, 4, 5] + 10 * (first + i)
      twins(:, i) = [1, 2, 3, 4] + 10 * (first + i)
      cells(i)%z = cmplx(first + i, 9, real64)
    end do
    scalar = 2.5_real64
    seven = reshape([(real(i, real64), i=1, 48)], shape(seven))
    back = [7, 8, 9]
    own = rank
  end subroutine

  subroutine errors()
    code = code_of_blob(cairn_piece(plane(1:5:2, 1)))
    call say('gaps')
    call cairn_add_array(session, 'dims', cairn_piece(i4), [n, n], [0, 0], code)
    call say('dims')
    call cairn_add_array(session, 'uneven', cairn_piece(unevens%z), stat=code)
    call say('uneven')
    call cairn_add_array(session, 'outside', cairn_piece(i4), [n], [1], code)
    call say('outside')
    call cairn_add_array(session, 'u', cairn_piece(i4))
    call cairn_update(session, 'u', cairn_piece(i4(:3)), stat=code)
    call say('shorter')
    call cairn_update(session, 'u', cairn_piece(r4), stat=code)
    call say('typed')
    call cairn_update(session, 'u', cairn_piece(plane(-1, :n)), stat=code)
    call say('spread')
    call cairn_update(session, 'u', cairn_piece(i4), index=2, stat=code)
    call say('second')
    call cairn_step(session, 1, code)
    call say('early')
    stop
  end subroutine

  subroutine say(what)
    character(*), intent(in) :: what
    print '(2a, i0, 2a)', what, ' ', code, ' ', cairn_error()
  end subroutine

  integer function code_of_blob(piece)
    type(cairn_piece), intent(in) :: piece
    call cairn_add_blob(session, 'gaps', piece, CAIRN_BLOB_DROP, code_of_blob)
  end function

  subroutine expect(what, holds)
    character(*), intent(in) :: what
    logical, intent(in) :: holds
    if (holds) return
    faults = faults + 1
    print '(3a, i0)', 'wrong: ', what, ' ', i
  end subroutine

  integer function from_environment(name)
    character(*), intent(in) :: name
    character(10) :: text
    call get_environment_variable(name, text)
    read (text, '(i10)') from_environment
  end function
end program
